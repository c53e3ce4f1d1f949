/**
 * Reads the Lua scripts: parses their headers, puts includes in, and names keys and arguments.
 * A header line `--! keys: meta defs` becomes locals of those names, so it cannot drift from what the script uses, and a call
 * with another number of keys or arguments is refused before anything runs. `...3` stands for any number of groups of three,
 * `wake?` at the end of the keys for one that may be left out and is nil then.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { HoldfastError } from '../errors.ts'
import type { LuaScript } from './script.ts'

const FOLDER = new URL('./', import.meta.url)
const HEADER = /^--! (keys|args|flags|returns): *(.*)$/gm
const INCLUDE = /^--@include (\w+)$/gm

function broken(name: string, problem: string): HoldfastError {
  return new HoldfastError('INTERNAL', `${name}.lua: ${problem}`)
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
    return withIncludes(readFileSync(new URL(`include/${name}.lua`, FOLDER), 'utf8'), seen)
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

/** Throws INTERNAL when the file has no header or names an include that is not there. */
export function loadScript(name: string): LuaScript {
  const text = readFileSync(new URL(`script/${name}.lua`, FOLDER), 'utf8')
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
