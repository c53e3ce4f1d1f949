/**
 * Makes the Lua scripts of their texts: parses their headers, puts includes in, and names keys and arguments.
 * A header line `--! keys: meta defs` becomes locals of those names, so it cannot drift from what the script uses, and a call
 * with another number of keys or arguments is refused before anything runs. `...3` stands for any number of groups of three,
 * `wake?` at the end of the keys for one that may be left out and is nil then.
 */
import { createHash } from 'node:crypto'
import { HoldfastError } from '../errors.ts'
import type { LuaScript } from './script.ts'
import { TEXTS } from './texts.js'

const HEADER = /^--! (keys|args|flags|returns): *(.*)$/gm
const INCLUDE = /^--@include (\w+)$/gm

function broken(name: string, problem: string): HoldfastError {
  return new HoldfastError('INTERNAL', `${name}.lua: ${problem}`)
}

function textOf(folder: 'include' | 'script', name: string): string {
  const text = TEXTS[`${folder}/${name}.lua`]
  if (text === undefined) throw broken(name, `there is no such ${folder}`)
  return text
}

const words = (text: string | undefined): readonly string[] => (text ?? '').split(/\s+/).filter((word) => word !== '')

function headerOf(text: string): ReadonlyMap<string, string> {
  return new Map([...text.matchAll(HEADER)].map(([, field = '', value = '']) => [field, value]))
}

/** The text with each include put in where it is first named; an include may name others. */
function withIncludes(text: string, seen: Set<string>): string {
  return text.replace(INCLUDE, (_line, name: string) => {
    if (seen.has(name)) return ''
    seen.add(name)
    return withIncludes(textOf('include', name), seen)
  })
}

/** The names of a header line and the Lua condition of a wrong number; `...` at the end stands for any more of them, `name?` for one or none. */
function counted(listed: readonly string[], count: string): readonly [names: readonly string[], wrong: string] {
  const last = listed.at(-1) ?? ''
  if (last.endsWith('?'))
    return [
      [...listed.slice(0, -1), last.slice(0, -1)],
      `${count} < ${listed.length - 1} or ${count} > ${listed.length}`,
    ]
  const open = /^\.\.\.(\d*)$/.exec(last)
  if (open === null) return [listed, `${count} ~= ${listed.length}`]
  const names = listed.slice(0, -1)
  const isUneven = open[1] === '' ? '' : ` or (${count} - ${names.length}) % ${open[1]} ~= 0`
  return [names, `${count} < ${names.length}${isUneven}`]
}

/** Locals for the names of a header, and the refusal of a wrong call. */
function preamble(name: string, keys: readonly string[], args: readonly string[]): string {
  const [named, argsWrong] = counted(args, '#ARGV')
  const [roles, keysWrong] = counted(keys, '#KEYS')
  const wrong = `${keysWrong} or ${argsWrong}`
  return [
    `if ${wrong} then return redis.error_reply('HOLDFAST_ARGUMENTS ${name}') end`,
    ...roles.map((key, index) => `local ${key} = KEYS[${index + 1}]`),
    ...named.map((arg, index) => `local ${arg} = ARGV[${index + 1}]`),
    `local args_read = ${named.length}`,
  ].join('\n')
}

/** Throws INTERNAL when there is no such file. */
export const loadScript = (name: string): LuaScript => parseScript(name, textOf('script', name))

/** Throws INTERNAL when the text has no header or names an include that is not there. */
export function parseScript(name: string, text: string): LuaScript {
  const header = headerOf(text)
  for (const field of ['keys', 'args', 'returns'])
    if (!header.has(field)) throw broken(name, `no '${field}' in the header`)
  const keys = words(header.get('keys'))
  const args = words(header.get('args'))
  const flags = words(header.get('flags'))
  const shebang = `#!lua${flags.length === 0 ? '' : ` flags=${flags.join(',')}`}`
  const body = withIncludes(text.replace(HEADER, ''), new Set())
  const source = `${shebang}\n${preamble(name, keys, args)}\n${body}`
  return {
    name,
    source,
    sha1: createHash('sha1').update(source).digest('hex'),
    keys: keys.filter((role) => !role.endsWith('?')),
    optionalKey: keys.find((role) => role.endsWith('?'))?.slice(0, -1) ?? null,
    args,
    isWriting: !flags.includes('no-writes'),
  }
}
