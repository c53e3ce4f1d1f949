// A producer or a worker in a process of its own. It is told what to do by messages and says how far it is.
import { inputOf, machineTime } from '../scenario/shared.mjs'

const [role, moduleName, json] = process.argv.slice(2)
const options = JSON.parse(json)
const queue = await (await import(`./${moduleName}.mjs`)).open(options)
const REPORT_EVERY_MS = 2
const AT_BYTES = ',"at":1234567.123456'.length

function stampedInput(index) {
  return { ...inputOf(options.payloadBytes - AT_BYTES, index), at: machineTime() }
}

async function produce({ index, wait }) {
  await new Promise((resolve) => setTimeout(resolve, wait))
  await queue.add(stampedInput(index))
}

let done = 0
let lastAt = 0
let reportDue = false

function report() {
  reportDue = false
  process.send({ done, lastAt })
}

async function count() {
  done += 1
  lastAt = machineTime()
  if (reportDue) return
  reportDue = true
  setTimeout(report, REPORT_EVERY_MS)
}

const worker = role === 'worker' ? await queue.work(options.concurrency, count) : null

async function stop() {
  await worker?.stop()
  await queue.close()
  process.disconnect()
}

process.on('message', (message) => {
  const answer = { add: produce, start: () => worker.start(), stop }[message.type](message)
  Promise.resolve(answer).catch((error) => {
    console.error(error)
    process.exit(1)
  })
})
// Whoever started this process is gone when the channel closes.
process.on('disconnect', () => process.exit())
process.send({ ready: true })
