/**
 * A store beside the memory store: every call goes to both, and what they answer must be the same. The memory store is the reference.
 * What a store may do otherwise it says itself, by a function that turns such an answer into the expected one and no other.
 */
import { expect } from 'vitest'
import { MemoryStore } from '#dist/src/backends/memory/store.js'
import type { Claim, MessageType, Reply, Request, StoredJob } from '#dist/src/backends/protocol/index.js'

export interface Lease {
  readonly id: string
  readonly token: string
}

/** The one clock of both stores. */
export interface ModelClock {
  now(): number
  advance(ms: number): void
}

export interface Answers<T extends MessageType = MessageType> {
  readonly type: T
  readonly request: Request<T>
  readonly actual: Reply<T>
  readonly expected: Reply<T>
}

export interface Subject {
  readonly clock: ModelClock
  call<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>>
  /** The actual answer, with what is allowed to differ as expected. */
  excuse?(answers: Answers): Reply<MessageType>
  /** True when the store may have left undone what the memory store did by the way: then both are brought up to date. */
  isBehind?(answers: Answers): boolean
}

type ListQuery = Request<'job.list'>

const LISTS: readonly Pick<ListQuery, 'lane' | 'states'>[] = [
  { lane: null, states: null },
  { lane: 'a', states: null },
  { lane: null, states: ['dlq', 'queued'] },
  { lane: null, states: ['completed'] },
  { lane: null, states: ['scheduled', 'retry_wait'] },
  { lane: 'b', states: ['cancelled', 'running', 'completed'] },
]
const PAGE = 3

/** Both stores, what was granted so far, and a comparison of every reply. */
export class Pair {
  readonly leases: Lease[] = []
  readonly ids: string[] = []
  /** Then nothing is kept for ever, so that all can be gone in the end. */
  readonly isForgetful: boolean
  lastClaim: Claim | null = null
  claims = 0
  private readonly log: string[] = []
  private readonly subject: Subject
  private readonly memory: MemoryStore

  constructor(subject: Subject, isForgetful = false) {
    const { clock } = subject
    this.subject = subject
    this.isForgetful = isForgetful
    this.memory = new MemoryStore({ now: () => clock.now(), monotonic: () => clock.now() })
  }

  get clock(): ModelClock {
    return this.subject.clock
  }

  keep(keepMs: number | null): number | null {
    return keepMs === null && this.isForgetful ? 100 : keepMs
  }

  async send<T extends MessageType>(type: T, request: Request<T>): Promise<Reply<T>> {
    this.log.push(`${this.clock.now()} ${type} ${JSON.stringify(request)}`)
    const expected = this.ask(type, request)
    const actual = await this.subject.call(type, request).catch((cause: unknown) => {
      throw new Error(this.story, { cause })
    })
    const answers = { type, request, actual, expected } as unknown as Answers
    const excused = this.subject.excuse?.(answers) ?? actual
    expect(normal(excused), this.story).toEqual(normal(expected))
    if (type === 'job.turn' && this.subject.isBehind?.(answers) === true)
      await this.catchUp(request as Request<'job.turn'>)
    return actual
  }

  /** Due jobs become ready and passed deadlines count in both; who had done it already does not matter. */
  private async catchUp({ claims }: Request<'job.turn'>): Promise<void> {
    const request = { limit: 1_000, keepDeadMs: claims[0]?.keepDeadMs ?? null }
    const { pruned, outputsDropped, more } = this.ask('store.maintain', request)
    expect(await this.subject.call('store.maintain', request), this.story).toMatchObject({
      pruned,
      outputsDropped,
      more,
    })
  }

  /** All that was asked, the last one last. */
  get story(): string {
    return this.log.join('\n')
  }

  private ask<T extends MessageType>(type: T, request: Request<T>): Reply<T> {
    const handler = this.memory.handlers[type] as (request: Request<T>) => Reply<T>
    return handler(request)
  }

  /** Everything that can be read. */
  async compareAll(): Promise<void> {
    const { ids } = this
    await this.send('job.get', { ids })
    await this.send('job.history', { ids })
    await this.send('job.states', { ids })
    await this.send('job.logs', { queries: ids.map((id) => ({ id, after: null, limit: 100 })) })
    await this.send('queue.stats', { lanes: null })
    await this.send('queue.stats', { lanes: ['a', 'b', 'none'] })
    await this.send('queue.policy', { changes: [], usage: ['a', 'b', 'c', 'none'] })
    await this.send('lease.reap', { decisions: [], limit: 1_000 })
    for (const filter of LISTS) await this.comparePages({ ...filter, type: null, limit: PAGE })
  }

  /** Cursors are each store's own, so the pages of each are followed by its own. */
  private async comparePages(query: Omit<ListQuery, 'cursor'>): Promise<void> {
    const expected = await pagesOf(async (request) => this.ask('job.list', request), query)
    const actual = await pagesOf((request) => this.subject.call('job.list', request), query)
    expect(actual.map(({ length }) => length)).toEqual(expected.map(({ length }) => length))
    const [all, reference] = [actual, expected].map((pages) => ({ jobs: pages.flat(), cursor: null }))
    const answers = { type: 'job.list', request: { ...query, cursor: null }, actual: all, expected: reference }
    const excused = this.subject.excuse?.(answers as unknown as Answers) ?? all
    expect(excused, `${this.story}\n${JSON.stringify(query)}`).toEqual(reference)
  }
}

type Page = Reply<'job.list'>['jobs']

async function pagesOf(
  ask: (request: ListQuery) => Promise<Reply<'job.list'>>,
  query: Omit<ListQuery, 'cursor'>,
): Promise<readonly Page[]> {
  const pages: Page[] = []
  let cursor: string | null = null
  do {
    const reply: Reply<'job.list'> = await ask({ ...query, cursor })
    pages.push(reply.jobs)
    cursor = reply.cursor
  } while (cursor !== null)
  return pages
}

const byText = (a: unknown, b: unknown): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)

/** Orders what the protocol leaves unordered, and drops lanes of which there is nothing to say. */
function normal(reply: Reply<MessageType>): unknown {
  if ('grants' in reply)
    return { ...reply, grants: reply.grants.map((grant) => ({ ...grant, deadlined: [...grant.deadlined].sort() })) }
  if ('expired' in reply) return { ...reply, expired: [...reply.expired].sort(byText) }
  if ('workers' in reply) return { ...reply, workers: [...reply.workers].sort(byText) }
  if ('policies' in reply) return { ...reply, policies: [...reply.policies].sort(byText) }
  if ('lanes' in reply) {
    const isKnown = (counts: object): boolean => Object.values(counts).some((count) => count > 0)
    return { lanes: reply.lanes.filter(({ counts, paused }) => paused || isKnown(counts)) }
  }
  return reply
}

/** The same jobs with their lanes mixed as is wanted; each lane keeps its order. */
export function likewise(actual: readonly StoredJob[], expected: readonly StoredJob[]): readonly StoredJob[] {
  const rest = new Map<string, StoredJob[]>()
  for (const job of actual) rest.set(job.lane, [...(rest.get(job.lane) ?? []), job])
  return expected.flatMap(({ lane }) => rest.get(lane)?.shift() ?? []).concat([...rest.values()].flat())
}

/** Jobs that one call stored in several lanes may be listed in any order, where one of the lanes counts what it accepts. */
export function excuseSameTime({ type, actual, expected }: Answers): Reply<MessageType> {
  if (type !== 'job.list') return actual
  const [reply, wanted] = [actual as Reply<'job.list'>, expected as Reply<'job.list'>]
  const times = (jobs: readonly StoredJob[]): string => jobs.map(({ createdAt }) => createdAt).join()
  return times(reply.jobs) === times(wanted.jobs) ? { ...reply, jobs: likewise(reply.jobs, wanted.jobs) } : actual
}
