/**
 * The entry point of a handler thread: runs what piscina hands on and answers with outcomes. It never throws across the pool, so
 * that a rejection on the main thread means that the thread died. Started by piscina in `src/actors/thread-host.ts`.
 */
import { MessageChannel, parentPort, workerData } from 'node:worker_threads'
import type {
  LoadMessage,
  LoadReply,
  PortMessage,
  RunMessage,
  RunReply,
  ThreadData,
  VoidMessage,
} from './handler-protocol.ts'
import { MainLink } from './main-link.ts'
import { ModuleRunner } from './module-runner.ts'
import { beginOutput, capMessages, capOutput } from './output-cap.ts'

capOutput()

const channel = new MessageChannel()
const taken = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
const link = new MainLink(channel.port1, taken)
const runner = new ModuleRunner((workerData as ThreadData).modules, link)
parentPort?.postMessage({ type: 'holdfast.port', port: channel.port2, taken } satisfies PortMessage, [channel.port2])
if (parentPort !== null) capMessages(parentPort)
// A handler may end its thread while lines of it are held.
process.once('exit', () => link.flush())

/** What piscina calls for each task. */
export function onTask(message: LoadMessage | RunMessage | VoidMessage): Promise<LoadReply | RunReply> {
  if (typeof message === 'number') return runner.tryLoad(message)
  if (message.length === 0) return Promise.resolve([0, undefined] as const)
  beginOutput()
  return runner.run(message)
}
