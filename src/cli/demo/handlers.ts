/**
 * The handlers of the demo. The scan repeats safely: each job has a key made of its path, so what an earlier attempt has stored
 * is found again and not made twice. Files and the poison run in threads, the rest inline.
 */
import { createHash } from 'node:crypto'
import { type EnqueueRequest, type Handler, type Holdfast, handle, inThread, type JobContext } from '../../index.ts'
import {
  DELAY_MS,
  delayedJob,
  fileJob,
  flakyJob,
  lateJob,
  poisonJob,
  reportJob,
  type ScanInput,
  type ScanOutput,
  scanJob,
} from './contracts.ts'
import { listFiles } from './folder.ts'
import { readablePath } from './path.ts'
import { makeReport } from './report.ts'

const BATCH_JOBS = 500

export interface DemoContext {
  readonly store: Holdfast
}

export const demoHandlers: readonly Handler<DemoContext>[] = [
  handle<ScanInput, ScanInput, ScanOutput, DemoContext>(scanJob, scan),
  handle(flakyJob, (input, { attempt }) => {
    if (attempt <= input.failures) throw new Error(`not yet: failure ${attempt} of ${input.failures}`)
    return `worked at attempt ${attempt}`
  }),
  handle(lateJob, () => {
    throw new Error('a job past its deadline was run')
  }),
  handle(delayedJob, () => 'came when it was due'),
  handle(reportJob, (_input, { context, lane, signal }: JobContext<DemoContext>) =>
    makeReport(context.store, lane, signal),
  ),
  inThread(fileJob, new URL('./digest-file.js', import.meta.url)),
  inThread(poisonJob, new URL('./poison.js', import.meta.url)),
]

async function scan(input: ScanInput, { context, lane, signal }: JobContext<DemoContext>): Promise<ScanOutput> {
  const { store } = context
  const enqueueAll = async (requests: readonly EnqueueRequest[]): Promise<number> => {
    signal.throwIfAborted()
    return new Set((await store.enqueueMany(requests)).map(({ id }) => id)).size
  }
  let accepted = await enqueueAll(extras(lane))
  let files = 0
  let batch: EnqueueRequest[] = []
  for await (const bytes of listFiles(input)) {
    files += 1
    batch.push(toRequest(input.folder, bytes, lane))
    if (batch.length < BATCH_JOBS) continue
    accepted += await enqueueAll(batch)
    batch = []
  }
  accepted += await enqueueAll(batch)
  return { files, accepted }
}

function toRequest(folder: string, bytes: Buffer, lane: string): EnqueueRequest {
  // A path may be longer than a key and hold any byte.
  const key = `file:${createHash('sha256').update(bytes).digest('hex')}`
  const input = { folder, ...readablePath(bytes) }
  return { job: fileJob as EnqueueRequest['job'], input, options: { queue: lane, idempotencyKey: key } }
}

function extras(lane: string): readonly EnqueueRequest[] {
  const at = (key: string) => ({ queue: lane, idempotencyKey: key, priority: 1 })
  return [
    { job: flakyJob as EnqueueRequest['job'], input: { failures: 2 }, options: at('flaky') },
    { job: poisonJob as EnqueueRequest['job'], input: null, options: at('poison') },
    { job: lateJob as EnqueueRequest['job'], input: null, options: { ...at('late'), deadline: Date.now() - 1 } },
    { job: delayedJob as EnqueueRequest['job'], input: null, options: { ...at('delayed'), delay: DELAY_MS } },
  ]
}
