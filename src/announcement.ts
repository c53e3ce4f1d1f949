/** How a worker is announced to its store: by its settings, and by the machine and the versions it runs on. */
import { hostname } from 'node:os'
import { Membership, type MembershipOptions } from './actors/membership.ts'
import type { Engine, WorkerSettings } from './engine.ts'
import { NODE_VERSION, VERSION } from './version.ts'

export function announce(
  { backend, clock, timers, random, warn }: Engine,
  { id, lanes, handlers }: WorkerSettings,
  look: MembershipOptions['look'],
): Membership {
  const machine = { host: hostname(), pid: process.pid, nodeVersion: NODE_VERSION, version: VERSION }
  const identity = { id, lanes, types: [...handlers.keys()], ...machine }
  return new Membership({ backend, clock, timers, random, warn, identity, look })
}
