/**
 * The entry point of a handler process: the same as `handler-worker.ts`, over the channel of a child process. It ends when its parent
 * lets go of it or dies, also while a handler blocks it: a thread of its own looks for that. Started by `src/actors/handler-process.ts`.
 */
import { Worker } from 'node:worker_threads'
import { toFailure } from '../src/failure.ts'
import type { WorkerRole } from '../src/worker-file.ts'
import type { FromProcess, MainMessage, ProcessMessage, ThreadMessage } from './handler-protocol.ts'
import { MainLink, type MainPort } from './main-link.ts'
import { ModuleRunner } from './module-runner.ts'
import { beginOutput, capOutput } from './output-cap.ts'

// Taken before any handler module is loaded: what it does to `process` later must not cut the line.
const send = process.send?.bind(process) as ((message: unknown, sent?: () => void) => boolean) | undefined
let toLink: (message: MainMessage) => void = () => undefined

function post(message: FromProcess | ThreadMessage, sent: () => void = () => undefined): void {
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
      beginOutput()
      void runner.run(message.message).then((outcome) => reply(message.message[0], outcome))
      return
    default:
      toLink(message)
  }
}

if (send === undefined) throw new Error('this file runs as a child process only')
capOutput()
process.on('message', receive)
process.on('disconnect', () => process.exit())
process.on('uncaughtException', (error) => {
  post({ type: 'dying', failure: toFailure(error) }, () => process.exit(1))
  // Where there is no line to tell it by, or it is full.
  setTimeout(() => process.exit(1), 1_000)
})
new Worker(process.argv[1] ?? '', {
  argv: ['parent-watch' satisfies WorkerRole],
  workerData: { parent: process.ppid },
  execArgv: [],
  stdin: false,
  resourceLimits: { maxOldGenerationSizeMb: 16 },
})
  .on('error', () => process.exit(1))
  .unref()
