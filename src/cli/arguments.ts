/**
 * Reads the command line: finds the command, parses its flags strictly, and turns flag text into values.
 * Everything wrong is a `UsageError` of one line; ranges and names are left to the library, which knows its limits.
 */
import { type ParseArgsConfig, parseArgs } from 'node:util'
import type { Duration } from '../index.ts'

/** What the user typed cannot be done; shown as one line, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export type OptionTable = NonNullable<ParseArgsConfig['options']>
export type FlagValues = Readonly<Record<string, string | boolean | undefined>>

/** What every command takes. */
const GLOBAL_OPTIONS = {
  url: { type: 'string' },
  namespace: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const satisfies OptionTable

const FRONT_OPTIONS: OptionTable = { ...GLOBAL_OPTIONS, version: { type: 'boolean', short: 'v' } }

export interface FoundCommand {
  /** null: none was given. */
  readonly name: string | null
  readonly rest: readonly string[]
  readonly wantsVersion: boolean
  readonly wantsHelp: boolean
}

/** The first word that is not a flag is the command; flags may stand before it. */
export function findCommand(argv: readonly string[]): FoundCommand {
  const { tokens, values } = parseArgs({
    args: [...argv],
    options: FRONT_OPTIONS,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const wantsHelp = values.help === true
  const wantsVersion = values.version === true
  const token = tokens.find(({ kind }) => kind === 'positional')
  if (token === undefined) return { name: null, rest: argv, wantsHelp, wantsVersion }
  const rest = [...argv.slice(0, token.index), ...argv.slice(token.index + 1)]
  return { name: argv[token.index] ?? null, rest, wantsHelp, wantsVersion: false }
}

export interface ArgumentRule {
  readonly usage: string
  readonly options: OptionTable
  /** How many words besides the flags. */
  readonly words: readonly [min: number, max: number]
}

export interface ParsedArguments {
  readonly flags: FlagValues
  readonly words: readonly string[]
}

export function parseArguments(args: readonly string[], rule: ArgumentRule): ParsedArguments {
  const options: OptionTable = { ...GLOBAL_OPTIONS, ...rule.options }
  const { values, positionals } = parseStrictly(args, options, rule.usage)
  if (values.help === true) return { flags: values as FlagValues, words: positionals }
  const [min, max] = rule.words
  if (positionals.length < min) throw new UsageError(`something is missing; usage: holdfast ${rule.usage}`)
  if (positionals.length > max) {
    throw new UsageError(`unexpected argument '${positionals[max] ?? ''}'; usage: holdfast ${rule.usage}`)
  }
  return { flags: values as FlagValues, words: positionals }
}

function parseStrictly(args: readonly string[], options: OptionTable, usage: string) {
  try {
    return parseArgs({ args: joinNegative(args, options), options, strict: true, allowPositionals: true })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const first = message.split(/\n|\. /, 1)[0] ?? ''
    throw new UsageError(`${first.replace(/\.$/, '')}; usage: holdfast ${usage}`)
  }
}

/** `--priority -5` reads as two flags to the parser, so a negative number is joined to the flag before it. */
function joinNegative(args: readonly string[], options: OptionTable): string[] {
  const joined: string[] = []
  for (const arg of args) {
    const before = joined.at(-1)
    const takesText = before?.startsWith('--') === true && options[before.slice(2)]?.type === 'string'
    if (takesText && /^-\d/.test(arg)) joined[joined.length - 1] = `${before}=${arg}`
    else joined.push(arg)
  }
  return joined
}

export function textFlag(flags: FlagValues, name: string): string | undefined {
  const value = flags[name]
  return typeof value === 'string' ? value : undefined
}

export function numberFlag(flags: FlagValues, name: string): number | undefined {
  const text = textFlag(flags, name)
  if (text === undefined) return undefined
  if (!/^-?\d+(\.\d+)?$/.test(text)) throw new UsageError(`--${name}: expected a number; got ${JSON.stringify(text)}`)
  return Number(text)
}

const DURATION = /^\d+(\.\d+)?(ms|s|m|h|d)?$/

/** Digits alone are milliseconds; the library checks the range. */
export function durationFlag(flags: FlagValues, name: string): Duration | undefined {
  const text = textFlag(flags, name)
  if (text === undefined) return undefined
  if (!DURATION.test(text))
    throw new UsageError(
      `--${name}: expected text such as 250ms, 30s or 5m, or milliseconds; got ${JSON.stringify(text)}`,
    )
  return /[a-z]$/.test(text) ? (text as Duration) : Number(text)
}

/** Digits alone are epoch milliseconds; the library checks the rest. */
export function instantFlag(flags: FlagValues, name: string): string | number | undefined {
  const text = textFlag(flags, name)
  return text !== undefined && /^-?\d+$/.test(text) ? Number(text) : text
}

export function listFlag(flags: FlagValues, name: string): readonly string[] | undefined {
  return textFlag(flags, name)
    ?.split(',')
    .map((item) => item.trim())
}

export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new UsageError(`${what}: not valid JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Leaves out what is undefined, as `exactOptionalPropertyTypes` wants it. */
export function defined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}
