/**
 * Waits for a state of servers in other processes, which no event tells. Looks with a pause between, so that the servers get the
 * processor; a look that fails counts as not yet, since servers that change their roles close connections.
 */
import { setTimeout } from 'node:timers/promises'

const DEADLINE_MS = 40_000
const LOOK_AGAIN_MS = 25

/** What the first look gives that does not give undefined. */
export async function lookFor<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const until = performance.now() + DEADLINE_MS
  for (;;) {
    let problem = ''
    try {
      const found = await look()
      if (found !== undefined) return found
    } catch (error) {
      problem = `: ${error instanceof Error ? error.message : String(error)}`
    }
    if (performance.now() > until) throw new Error(`${what}: not within ${DEADLINE_MS} ms${problem}`)
    await setTimeout(LOOK_AGAIN_MS)
  }
}
