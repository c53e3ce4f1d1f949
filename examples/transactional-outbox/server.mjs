// A small shop over HTTP: an order and the e-mail that confirms it are written in one transaction. Whatever happens in between, be it
// an error, a declined order or `kill -9`, there are both or neither; and a worker sends the mail once there are both.
//
// Run, with npm install holdfast, and pg or better-sqlite3 beside it:
//   DATABASE_URL=postgres://localhost/shop node examples/transactional-outbox/server.mjs
//   DATABASE_URL=sqlite:shop.db            node examples/transactional-outbox/server.mjs
// Then:
//   curl -d '{"customer":"ada@example.org","item":"book","count":2}' localhost:3000/orders    201, and the mail is printed
//   curl -d '{"customer":"bob@example.org","item":"book","count":99}' localhost:3000/orders   409, no order and no mail
//   curl localhost:3000/orders
import { once } from 'node:events'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { connect, handle } from 'holdfast'
import { confirmation, OutOfStock } from './shop.mjs'

const url = process.env.DATABASE_URL ?? 'sqlite:shop.db'
const hf = await connect(url)
hf.require({ transactionalEnqueue: true, durableJobs: true })
const { openShop } = await import(url.startsWith('sqlite:') ? './sqlite.mjs' : './postgres.mjs')
const shop = await openShop(url, hf)

// Here in the same process; any other process with the same URL may do it.
const worker = await hf.worker({ handlers: [handle(confirmation, sendMail)], lanes: ['mail'] })

/** A real provider is given `ctx.jobId` as its key: a job may run again when its process is killed in the middle. */
async function sendMail({ customer, order, item, count }) {
  console.log(`mail to ${customer}: thank you for order ${order}, ${count} × ${item}`)
}

const server = createServer(async (request, response) => {
  const [status, body] = await answer(request).catch((error) => [500, { error: error.message }])
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`)
})

async function answer(request) {
  if (request.url !== '/orders') return [404, { error: 'try /orders' }]
  if (request.method === 'GET') return [200, await shop.orders()]
  const { customer, item, count } = await json(request)
  try {
    const { order, job } = await shop.place({ customer, item, count })
    return [201, { order, job: job.id }]
  } catch (error) {
    if (error instanceof OutOfStock) return [409, { error: error.message }]
    throw error
  }
}

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1')
await once(server, 'listening')
console.log(`the shop is open at http://127.0.0.1:${server.address().port}/orders`)

process.once('SIGTERM', async () => {
  server.close()
  await worker.stop()
  await hf.close()
  await shop.close()
})
