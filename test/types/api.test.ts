/** The types that users meet: what is inferred, and what must not compile. */
import { connect, defineJob, type EnqueueRequest, handle, inThread, type JobContext, type LogLine } from 'holdfast'
import { expectTypeOf, test } from 'vitest'
import { z } from 'zod'

const email = defineJob('email', {
  input: z.object({ to: z.string(), at: z.coerce.date() }),
  output: z.string().transform(Number),
})
const outputOnly = defineJob('output-only', { output: z.object({ ok: z.boolean() }) })
const plain = defineJob<{ readonly name: string }, number>('plain')

test('a handler gets the parsed input and returns what the output schema takes; result() gives what it makes', async () => {
  const hf = await connect('memory:')
  handle(email, (input) => {
    expectTypeOf(input.at).toEqualTypeOf<Date>()
    return '42'
  })
  const job = await hf.enqueue(email, { to: 'ada@example.org', at: '2030-01-01' })
  expectTypeOf(job.result).returns.resolves.toEqualTypeOf<number>()
  const other = await hf.enqueue(outputOnly, null)
  expectTypeOf(other.result).returns.resolves.toEqualTypeOf<{ ok: boolean }>()
  await hf.close()
})

test('what does not fit does not compile', async () => {
  const hf = await connect('memory:')
  const never = async (): Promise<void> => {
    // @ts-expect-error the input is a name
    await hf.enqueue(plain, { name: 1 })
    // @ts-expect-error the schema takes a string
    await hf.enqueue(email, { to: 3, at: 0 })
    // @ts-expect-error no such option
    await hf.enqueue(plain, { name: 'x' }, { priorty: 1 })
    // @ts-expect-error the handler returns a number
    handle(plain, () => 'text')
    // @ts-expect-error the output schema takes an object
    handle(outputOnly, () => 'text')
  }
  expectTypeOf(never).toBeFunction()
  await hf.close()
})

test('each entry of enqueueMany has the input of its own contract', async () => {
  const hf = await connect('memory:')
  await hf.enqueueMany([
    { job: plain, input: { name: 'x' } },
    { job: email, input: { to: 'ada@example.org', at: 0 }, options: { priority: 1 } },
    { job: 'by-name', input: 3 },
  ])
  await hf.enqueueMany(['a', 'b'].map((name) => ({ job: plain, input: { name } })))
  const requests: readonly EnqueueRequest[] = [{ job: plain, input: { name: 'y' } }]
  await hf.enqueueMany(requests)
  const never = async (): Promise<void> => {
    // @ts-expect-error the input is a name
    await hf.enqueueMany([{ job: plain, input: { name: 1 } }])
    // @ts-expect-error the second one lacks its input
    await hf.enqueueMany([{ job: plain, input: { name: 'x' } }, { job: email }])
    await hf.enqueueMany([
      { job: 'any', input: 1 },
      // @ts-expect-error the input of another contract
      { job: email, input: { name: 'x' } },
    ])
    // @ts-expect-error no such option
    await hf.enqueueMany([{ job: plain, input: { name: 'x' }, options: { priorty: 1 } }])
    // @ts-expect-error made elsewhere, it fits as little
    await hf.enqueueMany([1, 2].map((name) => ({ job: plain, input: { name } })))
  }
  expectTypeOf(never).toBeFunction()
  await hf.close()
})

test('the context of a handler is what its annotation says, and its worker must give it', async () => {
  interface Mailing {
    readonly mailer: { send(to: string): number }
  }
  interface Storing {
    readonly rows: number[]
    readonly hint?: string
  }
  const mailing = handle(plain, (input, ctx: JobContext<Mailing>) => ctx.context.mailer.send(input.name))
  const storing = handle(plain, (_input, ctx: JobContext<Storing>) => ctx.context.rows.length)
  const careless = handle(plain, () => 1)
  const easy = handle(plain, (_input, ctx: JobContext<{ readonly hint?: string }>) => ctx.context.hint?.length ?? 0)
  const threaded = inThread(plain, new URL('file:///handler.mjs'))
  expectTypeOf(mailing.kind).toEqualTypeOf<'inline'>()
  const hf = await connect('memory:')
  const mailer = { send: (to: string): number => to.length }
  const rows = [1]
  const never = async (): Promise<void> => {
    await hf.worker({ handlers: [careless] })
    await hf.worker({ handlers: [easy, careless, threaded] })
    await hf.worker({ handlers: [threaded], context: { mailer } })
    await hf.worker({ handlers: [mailing, careless, threaded], context: { mailer } })
    await hf.worker<Mailing & Storing>({ handlers: [mailing, storing, careless], context: { mailer, rows } })
    // @ts-expect-error one of them needs a mailer
    await hf.worker({ handlers: [mailing, careless, threaded] })
    // @ts-expect-error the same
    await hf.runUntilEmpty({ handlers: [mailing] })
    // @ts-expect-error this one needs rows too
    await hf.worker({ handlers: [mailing, storing], context: { mailer } })
    // @ts-expect-error this is no mailer
    await hf.worker({ handlers: [mailing], context: { mailer: 1 } })
  }
  expectTypeOf(never).toBeFunction()
  await hf.close()
})

test('logs are lines of plain data, and a result by id is of the type that is asked for', async () => {
  const hf = await connect('memory:')
  const lines = await hf.logs('default/01JDY5ABCDEFGHJKMNPQRSTVWX')
  expectTypeOf(lines).toEqualTypeOf<readonly LogLine[]>()
  expectTypeOf<LogLine['fields']>().toEqualTypeOf<Readonly<Record<string, unknown>>>()
  expectTypeOf(hf.result<{ n: number }>).returns.resolves.toEqualTypeOf<{ n: number }>()
  expectTypeOf(hf.result).returns.resolves.toEqualTypeOf<unknown>()
  await hf.close()
})
