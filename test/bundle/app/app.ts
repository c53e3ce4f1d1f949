/**
 * What is bundled: one job on the main loop, one in a thread, one in a process, on the store of STORE. Prints what came of them, or the
 * error, as one line of JSON. JOBS says which of them; with none it only enqueues.
 */
import { connect, defineJob, handle, inThread, isHoldfastError, VERSION } from 'holdfast'

const { STORE = '', HANDLER = '', JOBS = 'inline' } = process.env
const contracts = {
  inline: defineJob<number, number>('app.inline'),
  thread: defineJob<number, string>('app.thread'),
  process: defineJob<number, string>('app.process'),
}

/** A name that a minifier takes away. */
class PlusOne {
  run(input: number): number {
    return input + 1
  }
}

const isKind = (name: string): name is keyof typeof contracts => name in contracts

function handlerOf(kind: keyof typeof contracts) {
  if (kind === 'inline') return handle(contracts.inline, (input) => new PlusOne().run(input))
  return inThread(contracts[kind], new URL(HANDLER, import.meta.url), { isolation: kind })
}

async function work(): Promise<object> {
  const kinds = JOBS.split(',').filter(isKind)
  const hf = await connect(STORE, { namespace: `bundle-${process.pid}` })
  try {
    if (kinds.length === 0) return { state: (await hf.enqueue(contracts.inline, 41)).state }
    const worker = await hf.worker({ handlers: kinds.map(handlerOf) })
    const outputs: unknown[] = []
    for (const kind of kinds) {
      const job = await hf.enqueue(contracts[kind].type, 41)
      outputs.push(await job.result({ timeout: '20s' }))
    }
    await worker.stop()
    return { outputs, version: VERSION }
  } finally {
    await hf.close()
  }
}

void work()
  .catch((error: unknown) =>
    isHoldfastError(error) ? { code: error.code, ...error.details } : { thrown: String(error) },
  )
  .then((said) => console.log(JSON.stringify(said)))
