// docs/options.md: what the calls of the API take and give, read from the interfaces in src/ and their comments, so that it says what they say.
import { readFileSync } from 'node:fs'

const source = (file) => readFileSync(new URL(`../src/${file}`, import.meta.url), 'utf8')

/** In the order of the page: heading, what it is for, and where its members are. */
const SECTIONS = [
  ['`connect(url, options)`', 'connect-options.ts', 'ConnectOptions'],
  ['`defineJob(type, options)`', 'contract.ts', 'ContractOptions'],
  ['`inThread(contract, module, options)`', 'isolation.ts', 'IsolationOptions'],
  ['`enqueue(job, input, options)`', 'contract.ts', 'EnqueueOptions'],
  ['`worker(options)`, `runUntilEmpty(options)`', 'worker.ts', 'WorkerOptions'],
  ['`worker.stop(options)`, `close(options)`', 'worker.ts', 'StopOptions'],
  ['A worker', 'worker.ts', 'Worker'],
  ['`worker.on(event, listener)`', 'worker-events.ts', 'WorkerEvents'],
  ['What most events tell', 'telemetry.ts', 'JobEventFields'],
  ['What `slotLost` and `slotRecovered` tell', 'worker-events.ts', 'SlotEventFields'],
  ['`ctx`, the second argument of a handler', 'contract.ts', 'JobContext'],
  ['A job that was enqueued', 'job-handle.ts', 'JobHandle'],
  ['A client', 'client.ts', 'Holdfast'],
  ['`result(options)`', 'job-handle.ts', 'ResultOptions'],
  ['`list(options)`', 'job-requests.ts', 'ListOptions'],
  ['`logs(id, options)`', 'job-logs.ts', 'LogOptions'],
  ['`replay(id, options)`', 'job-requests.ts', 'ReplayOptions'],
  ['`setPolicy(lane, policy)`', 'lane-policy.ts', 'LanePolicyOptions'],
  ['`connect`: `retention`, and each of its `lanes`', 'retention.ts', 'LaneRetentionOptions'],
  ['`health(options)`', 'store-operations.ts', 'HealthOptions'],
]

const MEMBER = /^ {2}(?:readonly )?(?:async )?(?:get )?(\w+)(\??)(?:<.*?>)?([(:].*)$/

/** The members of an interface or class: a name once, its first signature, and what the comment above it says. */
function membersOf(file, name) {
  const text = source(file)
  const start = text.search(new RegExp(`^export (?:interface|class) ${name}\\b`, 'm'))
  if (start === -1) throw new Error(`src/${file} has no ${name}`)
  const lines = text.slice(start, text.indexOf('\n}', start)).split('\n').slice(1)
  const members = new Map()
  let comment = ''
  for (const line of lines) {
    const words = /^ {2}(?:\/\*\*| \*(?!\/))\s?(.*?)\s*(?:\*\/)?$/.exec(line)
    const member = MEMBER.exec(line)
    if (/^ {3}\*\/$/.test(line)) continue
    if (words !== null) comment = `${comment} ${words[1]}`.trim()
    else if (member !== null && !/^(?:constructor|private)$/.test(member[1])) {
      const [, key, optional, rest] = member
      if (!members.has(key)) members.set(key, { optional: optional === '?', rest, comment })
      comment = ''
    } else if (/^ {2}[}#p]/.test(line)) comment = ''
  }
  return members
}

const cell = (text) => text.replaceAll('|', '\\|')

function typeOf(rest) {
  if (rest.startsWith('(')) return 'call'
  const type = rest.slice(1).trim().replace(/[,{]$/, '').trim()
  return type === '' ? 'object' : `\`${type.replaceAll('readonly ', '')}\``
}

function table(file, name) {
  const rows = [...membersOf(file, name)].map(
    ([key, { optional, rest, comment }]) =>
      `| \`${key}${optional ? '?' : ''}\` | ${cell(typeOf(rest))} | ${cell(comment)} |`,
  )
  return `| name | type | meaning |\n|---|---|---|\n${rows.join('\n')}`
}

export const optionsPage = () => `# Options

Made from the interfaces in \`src/\` and their comments by \`node scripts/generate-docs.mjs\`; a test fails when this page is out of date.
The same comments are in the types of the package, where an editor shows them.

A \`Duration\` is a number of milliseconds or text such as \`250ms\`, \`30s\`, \`5m\`, \`2h\`, \`1d\`; an \`Instant\` is a \`Date\`, an ISO string with a zone, or
epoch milliseconds. An option that there is not is refused by name.

Retry policies: \`retry.exponential({ attempts, base, cap, jitter })\` (the default: 7 attempts, 2 s doubling up to 15 min, ± 20 %),
\`retry.fixed(attempts, delay)\`, \`retry.immediate(attempts)\`, \`retry.none()\`, or a function \`(failure, context) => policy\` in a contract or worker.
\`attempts\` counts all runs, the first too. A handler that throws \`new PermanentError(message)\` is not tried again, one that throws
\`new RetryAfter(delay)\` is tried again after that delay, whatever its policy says of delays.

${SECTIONS.map(([title, file, name]) => `## ${title}\n\n${table(file, name)}`).join('\n\n')}
`
