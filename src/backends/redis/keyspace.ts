/**
 * The version of the keyspace of a namespace, and the steps from one version to the next. Each step is idempotent and works lane by
 * lane, so that a migrator that died half-way is simply followed by the next; one runs at a time, under a lock with an end.
 * Today's version is the first, so there are no steps yet.
 */
import { delay, type Timers } from '../../clock.ts'
import { HoldfastError } from '../../errors.ts'
import { loadCatalog } from '../../lua/catalog.ts'
import { nonce, type Random } from '../../random.ts'
import { keyspaceKey } from './key.ts'
import { optionalText } from './reply.ts'
import type { RedisServers } from './servers.ts'

/** Brings a namespace from the version before to the one of its place in the list. */
export type KeyspaceStep = (servers: RedisServers, namespace: string) => Promise<void>

const STEPS: readonly KeyspaceStep[] = []
/** Of this release. */
export const KEYSPACE_VERSION = STEPS.length + 1
const LOCK_MS = 30_000
const LOOK_AGAIN_MS = 100

export interface KeyspaceOptions {
  readonly namespace: string
  readonly timers: Timers
  readonly random: Random
  readonly steps?: readonly KeyspaceStep[]
}

/** Rejects with STORE_SCHEMA_TOO_NEW when a later release has been here. */
export async function openKeyspace(servers: RedisServers, options: KeyspaceOptions): Promise<void> {
  const { namespace, steps = STEPS } = options
  const current = steps.length + 1
  const key = keyspaceKey(namespace)
  // Looked at first: a server that is full takes no new key, and those who drain it must get in.
  const isThere = (await servers.command('GET', key, [key])) !== null
  if (!isThere) await servers.command('SET', key, [key, current, 'NX'])
  for (;;) {
    const version = Number(optionalText(await servers.command('GET', key, [key])) ?? current)
    if (version === current) return
    if (!(version < current)) throw tooNew(version, current)
    await migrateOnce(servers, { ...options, version, steps })
  }
}

interface Migration extends KeyspaceOptions {
  readonly version: number
  readonly steps: readonly KeyspaceStep[]
}

/** One step under the lock, or a moment of waiting for whoever has it. */
async function migrateOnce(servers: RedisServers, migration: Migration): Promise<void> {
  const { namespace, timers, random, version, steps } = migration
  const key = keyspaceKey(namespace)
  const lock = `${key}:lock`
  const token = nonce(random)
  const isMine = (await servers.command('SET', lock, [lock, token, 'NX', 'PX', LOCK_MS])) !== null
  if (!isMine) return delay(LOOK_AGAIN_MS, timers)
  let next: number | '' = ''
  try {
    const found = Number(optionalText(await servers.command('GET', key, [key])))
    const step = steps[version - 1]
    if (found !== version || step === undefined) return
    await step(servers, namespace)
    next = version + 1
  } finally {
    // A migrator whose lock ran out must not take the version back that others have moved on.
    await servers.run(loadCatalog().keyspace_step, [key, lock], [token, version, next])
  }
}

function tooNew(found: number, known: number): HoldfastError {
  return new HoldfastError(
    'STORE_SCHEMA_TOO_NEW',
    `the namespace has keyspace version ${found}; this release knows ${known}: upgrade it, or use another namespace`,
    { details: { outcome: 'refused', found, known } },
  )
}
