/**
 * Ports for test servers. They lie below the range from which systems take the ports of outgoing connections, and low enough that
 * a Cluster node's second port (10000 higher) is free of them too.
 */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const FIRST = 7000
const LAST = 16_999
const TRIES = 50

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
}

/** A port on which nobody listens now, with the port 10000 above it. Another process may still be faster: then try again. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const port = randomInt(FIRST, LAST + 1)
    if ((await isFree(port)) && (await isFree(port + 10_000))) return port
  }
  throw new Error(`no free port from ${FIRST} to ${LAST} after ${TRIES} tries`)
}
