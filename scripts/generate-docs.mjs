// Writes what is made from the code: docs/lifecycle.md from the machine, docs/errors.md from the tables of codes, docs/options.md from the types, and in
// docs/keyspace.md the keys of each script and the permissions of a Redis user.
// `--check` writes nothing and fails when a page is out of date. Needs a build.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { TRANSITIONS } from '../dist/src/actors/job-machine.js'
import { ERROR_CODES } from '../dist/src/errors.js'
import { FAILURE_CLASSES } from '../dist/src/job.js'
import { loadCatalog } from '../dist/src/lua/catalog.js'
import { optionsPage } from './options-page.mjs'
import { aclRules, CONDITIONAL, redisCommands } from './redis-commands.mjs'

const docs = fileURLToPath(new URL('../docs/', import.meta.url))

const MEANING = {
  hold: 'accepted, but waits for a parent',
  schedule: 'not due yet',
  queue: 'can run now',
  due: 'its time has come',
  claim: 'a worker was given the lease',
  complete: 'the handler succeeded',
  retry: 'the attempt failed and budget is left',
  release: 'given back uncharged',
  expire: 'the lease ran out and budget is left',
  cancel: 'cancelled',
  die: 'dead-lettered: budget used up, a permanent failure, or a passed deadline',
}

function lifecycle() {
  const moves = Object.entries(TRANSITIONS).flatMap(([from, events]) =>
    Object.entries(events).map(([event, to]) => ({ from, event, to })),
  )
  const node = (state) => (state === 'new' ? '[*]' : state)
  const final = Object.entries(TRANSITIONS).flatMap(([state, events]) =>
    Object.keys(events).length === 0 ? [state] : [],
  )
  return `# The lifecycle of a job

Drawn from the machine in \`src/actors/job-machine.ts\` by \`node scripts/generate-docs.mjs\`; a test fails when this page is out of date.

\`\`\`mermaid
stateDiagram-v2
${moves.map(({ from, event, to }) => `  ${node(from)} --> ${to}: ${event}`).join('\n')}
${final.map((state) => `  ${state} --> [*]`).join('\n')}
\`\`\`

| from | event | to | when |
|---|---|---|---|
${moves.map(({ from, event, to }) => `| ${from === 'new' ? '(new)' : from} | ${event} | ${to} | ${MEANING[event]} |`).join('\n')}

\`${final.join('`, `')}\` are terminal: no move leaves them. A move that is not in the table is refused by every store.
`
}

function errors() {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { category, retryable, meaning }]) =>
      `| \`${code}\` | ${category} | ${retryable ? 'yes' : 'no'} | ${meaning} |`,
  )
  const failures = Object.entries(FAILURE_CLASSES).map(([code, kind]) => `| \`${code}\` | ${kind} |`)
  return `# Errors

Made from the tables in \`src/errors.ts\` and \`src/job.ts\` by \`node scripts/generate-docs.mjs\`; a test fails when this page is out of date.

## Errors of the API

Every rejection is a \`HoldfastError\` with \`code\`, \`category\`, \`retryable\`, \`details\` (the field, limit or id concerned) and \`cause\`.
\`isHoldfastError(error)\` also knows errors of another copy of the package.

| category | who can do something about it |
|---|---|
| caller | the code that made the call |
| conflict | nobody: the job is in another state than the call needs |
| lost | nobody: another worker has the lease |
| unavailable | time, or the operator of the store |
| handler | the author of the handler |
| internal | the authors of Holdfast |

| code | category | retryable | meaning |
|---|---|---|---|
${rows.join('\n')}

## Codes of failed attempts

The code of a failure is, in this order: the \`code\` property of what the handler threw, \`PERMANENT_ERROR\` for a \`PermanentError\`, a
prefix \`CODE: message\` (codes of this table in any letter case, others in capitals), else \`HANDLER_ERROR\`. A code that is not in the table is retryable.

| code | class |
|---|---|
${failures.join('\n')}

| class | what follows |
|---|---|
| retryable, timeout, system | a retry while budget is left, then the dead letters with \`MAX_ATTEMPTS_EXCEEDED\` |
| panic | the same, and the dead letters after \`maxCrashes\` crashes in a row, whatever the budget |
| permanent, deadline | the dead letters at once |
| cancelled | cancelled |
`
}

/** Which script is given which key of a lane. */
function keysOfScripts() {
  const scripts = Object.values(loadCatalog()).filter(
    ({ name }) => !/^(?:lane_register|lane_probe|wake_push|keyspace_step|rights_check|worker_\w+)$/.test(name),
  )
  const roles = [...new Set(scripts.flatMap(({ keys }) => keys))]
  const given = (role, isWriting) =>
    scripts
      .filter((script) => script.keys.includes(role) && script.isWriting === isWriting)
      .map(({ name }) => `\`${name}\``)
      .join(' ')
  return `| role | given to scripts that write | given to scripts that only read |
|---|---|---|
${roles.map((role) => `| \`${role}\` | ${given(role, true)} | ${given(role, false)} |`).join('\n')}
`
}

function permissions() {
  const always = redisCommands().filter((name) => !Object.hasOwn(CONDITIONAL, name))
  const others = redisCommands().filter((name) => Object.hasOwn(CONDITIONAL, name))
  return `A user of its own for each namespace, here \`default\`, with all that is needed and nothing more:

\`\`\`
ACL SETUSER holdfast on >PASSWORD ${aclRules('default', always)}
\`\`\`

${others.map((name) => `- \`+${name}\` beside, for ${CONDITIONAL[name]}.`).join('\n')}

\`INFO\` is the one command of the list that Redis counts among the dangerous; the store reads there who the server is. \`CONFIG GET appendfsync\`
is asked for as well and may be denied: \`durability\` is then taken as \`everysec\`.
`
}

/** A page that is written by hand but for one part. */
function withSection(text, name, section) {
  const begin = `<!-- ${name}: made by scripts/generate-docs.mjs -->\n`
  const end = `<!-- /${name} -->`
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from === -1 || to === -1) throw new Error(`the page has no section ${name}`)
  return `${text.slice(0, from)}${begin}\n${section}\n${text.slice(to)}`
}

const keyspace = withSection(
  withSection(readFileSync(`${docs}keyspace.md`, 'utf8'), 'keys', keysOfScripts()),
  'acl',
  permissions(),
)

export const PAGES = {
  'lifecycle.md': lifecycle(),
  'errors.md': errors(),
  'options.md': optionsPage(),
  'keyspace.md': keyspace,
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  let stale = 0
  for (const [name, text] of Object.entries(PAGES)) {
    if (process.argv.includes('--check')) {
      if (readFileSync(docs + name, 'utf8') !== text) {
        console.error(`docs/${name} is out of date`)
        stale += 1
      }
    } else writeFileSync(docs + name, text)
  }
  process.exitCode = stale === 0 ? 0 : 1
}
