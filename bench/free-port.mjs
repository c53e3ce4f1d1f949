// A port that nobody listens on, for the private server of a run.
import { createServer } from 'node:net'

export async function freePort() {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const port = 7_000 + Math.floor(Math.random() * 2_000)
    const probe = createServer()
    const free = await new Promise((resolve) => {
      probe.once('error', () => resolve(false))
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
    })
    if (free) return port
  }
  throw new Error('no free port from 7000 to 8999')
}
