// At-least-once means that a handler may run again: after a crash between its effect and its settlement, or by a replay.
// The pattern that gives one effect: write the effect and a row with the job's key in one transaction of your own database.
// Run: node examples/idempotent-effects.mjs
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { connect, defineJob, handle, retry } from 'holdfast'

process.env.HOLDFAST_LOG ??= 'silent'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-'))
const shop = new Database(join(folder, 'shop.db'))
shop.exec(`
  CREATE TABLE effect (key TEXT PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE payment (order_id TEXT NOT NULL, cents INTEGER NOT NULL);
`)
const remember = shop.prepare('INSERT INTO effect (key) VALUES (?) ON CONFLICT DO NOTHING')
const pay = shop.prepare('INSERT INTO payment (order_id, cents) VALUES (?, ?)')

/** True when this call made the payment, false when an earlier run had made it. */
const payOnce = shop.transaction(({ key, orderId, cents }) => {
  if (remember.run(key).changes === 0) return false
  pay.run(orderId, cents)
  return true
})

const charge = defineJob('charge', { retry: retry.immediate(5) })
const hf = await connect(`sqlite:${join(folder, 'jobs.db')}`)
let runs = 0

const worker = await hf.worker({
  handlers: [
    handle(charge, ({ orderId, cents }, ctx) => {
      runs += 1
      // The key comes from the meaning of the job, not from its id: a replay is another job with the same meaning.
      const didPay = payOnce({ key: `charge:${orderId}`, orderId, cents })
      // The worst moment to fail: the effect is there, the store does not know yet.
      if (ctx.attempt < 4 && ctx.metadata?.calm !== true) throw new Error('died after the payment')
      return didPay ? 'paid' : 'was paid already'
    }),
  ],
})

const order = { orderId: 'A-17', cents: 4_200 }
const job = await hf.enqueue(charge, order, { idempotencyKey: 'charge:A-17' })
console.log(`attempt 4 says: ${await job.result()}`)

// The same order once more, under no key at all: still one payment.
const twin = await hf.enqueue(charge, order, { metadata: { calm: true } })
console.log(`a second job says: ${await twin.result()}`)

const { payments } = shop.prepare('SELECT count(*) AS payments FROM payment').get()
console.log(`${runs} runs, ${payments} payment`)

await worker.stop()
await hf.close()
shop.close()
rmSync(folder, { recursive: true })
process.exitCode = payments === 1 ? 0 : 1
