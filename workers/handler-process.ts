/**
 * The entry point of a handler process: the same as `handler-worker.ts`, over the channel of a child process. It ends when its parent
 * lets go of it or dies, with all that its handlers have started, also while a handler blocks it: a thread of its own looks for that.
 * Started by `src/actors/handler-process.ts`.
 */
import { Worker } from 'node:worker_threads'
import { toFailure } from '../src/failure.ts'
import type { WorkerRole } from '../src/worker-file.ts'
import type { FromProcess, MainMessage, ProcessMessage, RunMessage, ThreadMessage } from './handler-protocol.ts'
import { MainLink, type MainPort } from './main-link.ts'
import { ModuleRunner } from './module-runner.ts'
import { beginOutput, capOutput } from './output-cap.ts'
import { endGroup } from './own-group.ts'

type Sent = (error?: Error | null) => void

// Taken before any handler module is loaded: what it does to `process` later must not cut the line.
const send = process.send?.bind(process) as ((message: unknown, sent?: Sent) => boolean) | undefined
const exit = process.exit.bind(process)
const parent = process.ppid
let toLink: (message: MainMessage) => void = () => undefined

/** Whoever says something must be able to hear what is answered, and each attempt ends by saying something. */
function post(message: FromProcess | ThreadMessage, sent: Sent = () => undefined): void {
  keepListening()
  if (process.connected) send?.(message, sent)
}

const port: MainPort = {
  postMessage: post,
  on: (_event, listener) => {
    toLink = listener
  },
  // The channel is what keeps an idle process alive.
  unref: () => undefined,
}

const link = new MainLink(port)
let runner = new ModuleRunner([], link)

/** A few values can be cloned to a thread but not to another process. */
function reply(task: number, outcome: Extract<FromProcess, { type: 'reply' }>['reply']): void {
  try {
    post({ type: 'reply', task, reply: outcome })
  } catch (error) {
    const message = `output: cannot leave the process: ${toFailure(error).message}`
    post({ type: 'reply', task, reply: [outcome[0], undefined, { code: 'BAD_OUTPUT', message }] })
  }
}

function receive(message: ProcessMessage): void {
  switch (message.type) {
    case 'modules':
      runner = new ModuleRunner(message.modules, link)
      return
    case 'load':
      void runner.tryLoad(message.position).then((problem) => post({ type: 'loaded', problem }))
      return
    case 'run':
      // Nothing of it begins before this is out of our hands: however we end, the other side reads it.
      post({ type: 'taken', task: message.message[0] }, (error) => {
        if (!(error instanceof Error)) void run(message.message)
      })
      return
    default:
      toLink(message)
  }
}

async function run(message: RunMessage): Promise<void> {
  beginOutput()
  reply(message[0], await runner.run(message))
}

/**
 * The group goes last, after what handler modules do at the exit; and also where one of them throws there. A parent that has died may still
 * stand as ours at this moment.
 */
function leave(): void {
  process.on('exit', endGroup)
  try {
    exit()
  } finally {
    endGroup()
  }
}

/** A handler that removes all listeners means its own. */
function keepListening(): void {
  const has = (name: string, listener: unknown): boolean => (process.rawListeners(name) as unknown[]).includes(listener)
  if (!has('message', receive)) process.on('message', receive)
  if (!has('disconnect', leave)) process.on('disconnect', leave)
}

if (send === undefined) throw new Error('this file runs as a child process only')
capOutput()
keepListening()
// Said once, it holds whatever becomes of the listeners: without it the channel of a process that has none keeps nothing alive.
process.channel?.ref()
process.on('uncaughtException', (error) => {
  post({ type: 'dying', failure: toFailure(error) }, () => exit(1))
  // Where there is no line to tell it by, or it is full.
  setTimeout(() => exit(1), 1_000)
})
// One that ends by itself is cleared up after by its parent, as long as there is one.
process.on('exit', () => {
  if (process.ppid !== parent) endGroup()
})
new Worker(process.argv[1] ?? '', {
  argv: ['parent-watch' satisfies WorkerRole],
  workerData: { parent },
  execArgv: [],
  stdin: false,
  resourceLimits: { maxOldGenerationSizeMb: 16 },
})
  .on('error', () => exit(1))
  .unref()
