// The commands that the Redis store sends, read off the scripts and the store's source: what an ACL user must be allowed.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../src/', import.meta.url))
const textsOf = (folder, ending) =>
  readdirSync(source + folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => readFileSync(`${source}${folder}/${name}`, 'utf8'))

const IN_SCRIPTS = /\b(?:redis\.call|write|read|check_each)\('([A-Z]+)'/g
const IN_STORE =
  /\b(?:send|command|execute)\((?:link, )?(?:\w+ \? )?'([A-Z]+|subscribe)'(?: : '([A-Z]+)')?(?:, \[\s*'([A-Z]+)')?/g
/** Those of which one kind alone is sent. */
const CONTAINERS = ['CONFIG', 'CLUSTER']
/** Sent by everybody, allowed or not; the first needs no permission, the second is only asked to know more. */
const NOT_NEEDED = ['hello', 'config|get']

/** Needed only with a certain setting. */
export const CONDITIONAL = {
  asking: 'a Cluster',
  'cluster|nodes': 'a Cluster',
  'cluster|shards': 'a Cluster',
  'cluster|slots': 'a Cluster',
  select: 'a database other than 0',
  wait: '`waitReplicas`',
}

/** Sorted, in the form of ACL rules such as `config|get`. */
export function redisCommands() {
  const found = new Set()
  for (const text of textsOf('lua', '.lua'))
    for (const [, name] of text.matchAll(IN_SCRIPTS)) found.add(name.toLowerCase())
  for (const text of textsOf('backends/redis', '.ts')) {
    for (const [, first, second, kind] of text.matchAll(IN_STORE)) {
      found.add((CONTAINERS.includes(first) && kind ? `${first}|${kind}` : first).toLowerCase())
      if (second) found.add(second.toLowerCase())
    }
  }
  return [...found].filter((name) => !NOT_NEEDED.includes(name)).sort()
}

/**
 * The rules of a user for one namespace.
 * @param {string} namespace
 * @param {readonly string[]} commands
 */
export function aclRules(namespace, commands = redisCommands()) {
  return [
    `~hf:{${namespace}:*`,
    `~hf:{${namespace}}:*`,
    `&hf:{${namespace}}:*`,
    '-@all',
    ...commands.map((name) => `+${name}`),
  ].join(' ')
}
