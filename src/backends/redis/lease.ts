/** Leases between claim and settlement: renewed, and taken back when they have run out. */
import type { ExpiredLease, RenewOutcome, Reply, Request, Verdict } from '../protocol/index.ts'
import type { ControlContext } from './control.ts'
import { unpackClaimed } from './definition.ts'
import { registryKey } from './key.ts'
import type { LaneRegistry } from './lane-registry.ts'
import { parseRun, parseTerms } from './record.ts'
import { bufferOf, listOf, meaningOf, numberOf, optionalText, textOf } from './reply.ts'
import type { RedisReply } from './servers.ts'
import { BATCH, chunksOf, groupByLane, type RedisSession } from './session.ts'
import { otherArguments, VERDICTS } from './settlement.ts'

const RENEWED: Readonly<Record<string, RenewOutcome>> = {
  r: 'renewed',
  c: 'cancelRequested',
  l: 'leaseLost',
  g: 'gone',
}

export async function renew(
  session: RedisSession,
  { leases, leaseMs }: Request<'lease.renew'>,
): Promise<Reply<'lease.renew'>> {
  const outcomes: RenewOutcome[] = leases.map(() => 'gone')
  const calls = groupByLane(leases, ({ id }) => id).flatMap(({ lane, items }) =>
    chunksOf(items, BATCH.leases, () => 0).map(async (chunk) => {
      const args = chunk.flatMap(({ item, local }) => [local, item.token])
      const letters = textOf(await session.run('lease_renew', lane, [leaseMs, ...args]))
      chunk.forEach(({ index }, place) => {
        outcomes[index] = meaningOf(RENEWED, letters[place])
      })
    }),
  )
  await Promise.all(calls)
  return { outcomes }
}

/** All lanes of the namespace, those of the decisions first. */
export async function reap(
  { session, registry, onReady }: ControlContext,
  { decisions, limit }: Request<'lease.reap'>,
): Promise<Reply<'lease.reap'>> {
  const verdicts: Verdict[] = decisions.map(() => 'gone')
  for (const { lane, items } of groupByLane(decisions, ({ id }) => id)) {
    for (const chunk of chunksOf(items, BATCH.otherSettlements, () => 0)) {
      const args = chunk.flatMap(({ item, local }) => otherArguments(item, local))
      const reply = listOf(await session.run('lease_reap', lane, [0, args.length / 10, ...args]))
      const letters = textOf(reply[0])
      chunk.forEach(({ index }, place) => {
        verdicts[index] = meaningOf(VERDICTS, letters[place])
      })
      // What ran counts no more, and what is requeued can be taken.
      if (/[ac]/.test(letters)) onReady(lane)
    }
  }
  const expired: ExpiredLease[] = []
  for (const lane of await expiredLanes(session, registry)) {
    if (expired.length >= limit) break
    const reply = listOf(await session.run('lease_reap', lane, [Math.min(BATCH.reads, limit - expired.length), 0]))
    expired.push(...readExpired(reply, lane))
  }
  return { verdicts, expired }
}

/** On one server a single look tells which lanes have a lease that ran out, and whether there are lanes that are not known here. */
async function expiredLanes(session: RedisSession, registry: LaneRegistry): Promise<readonly string[]> {
  if (session.servers.facts().isCluster) return registry.list()
  const { lanes, looks } = await lookAtAll(session, registry)
  return lanes.filter((_lane, index) => {
    const expiresInMs = looks[index]?.expiresInMs ?? null
    return expiresInMs !== null && expiresInMs <= 0
  })
}

interface AllLanes {
  readonly lanes: readonly string[]
  readonly looks: readonly LaneLook[]
}

/** The mark was read before the list, so a list that lacks a lane has an old one. */
async function lookAtAll(session: RedisSession, registry: LaneRegistry): Promise<AllLanes> {
  const { remembered } = registry
  const first = await probe(session, remembered?.lanes ?? [])
  if (remembered !== null && remembered.mark === first.mark) return { lanes: remembered.lanes, looks: first.looks }
  const lanes = await registry.list()
  registry.remembered = { lanes, mark: first.mark }
  return { lanes, looks: (await probe(session, lanes)).looks }
}

export interface LaneLook {
  readonly isReady: boolean
  readonly dueInMs: number | null
  readonly expiresInMs: number | null
}

const LOOKED_AT = ['meta', 'fifo', 'ready', 'scheduled', 'retrying', 'leases', 'deadlines', 'parked'] as const
const LANES_A_PROBE = 200

export interface Probed {
  readonly looks: readonly LaneLook[]
  /** Another one than before: a lane was added since. */
  readonly mark: string
}

/** What many lanes of one server could give, in one call each 200. Not for Clusters: the keys have many tags. */
export async function probe(session: RedisSession, lanes: readonly string[]): Promise<Probed> {
  const looks: LaneLook[] = []
  let mark = ''
  const parts = lanes.length === 0 ? [[]] : chunksOf(lanes, LANES_A_PROBE, () => 0)
  for (const part of parts) {
    const keys = part.flatMap((lane) => LOOKED_AT.map((role) => session.keys(lane).key(role)))
    const all = [registryKey(session.namespace), ...keys]
    const reply = listOf(await session.servers.run(session.scripts.lane_probe, all, []))
    part.forEach((_lane, index) => {
      const [ready, due, expires] = reply.slice(index * 3, index * 3 + 3)
      looks.push({ isReady: numberOf(ready) === 1, dueInMs: spanOf(due), expiresInMs: spanOf(expires) })
    })
    mark = textOf(reply.at(-1))
  }
  return { looks, mark }
}

function spanOf(reply: RedisReply | undefined): number | null {
  const text = textOf(reply)
  return text === '' ? null : Number(text)
}

/** Of what the script could read; nothing can be decided about the rest. */
function readExpired(reply: readonly RedisReply[], lane: string): readonly ExpiredLease[] {
  const now = numberOf(reply[1])
  const [ids = [], expiries, definitions, runs, terms] = reply.slice(2).map(listOf)
  return ids.flatMap((id, index) => {
    try {
      const { maxAttempts, maxCrashes } = unpackClaimed(bufferOf(definitions?.[index]))
      const run = parseRun(textOf(runs?.[index]))
      const termsText = optionalText(terms?.[index])
      return {
        id: `${lane}/${textOf(id)}`,
        token: run.token,
        workerId: run.workerId ?? '',
        attempt: run.attempts,
        maxAttempts: termsText === null ? maxAttempts : parseTerms(termsText).maxAttempts,
        crashes: run.crashes,
        maxCrashes,
        cancelRequested: run.state === 'X',
        startedAt: run.startedAt ?? now,
        expiredForMs: now - numberOf(expiries?.[index]),
      }
    } catch {
      return []
    }
  })
}
