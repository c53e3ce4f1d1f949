/** Merging of requests: what goes at once, what goes together, and how calls in flight share what there is. */
import { describe, expect, it } from 'vitest'
import { Merger } from '#dist/src/actors/merger.js'
import { Deadlines } from '#dist/src/deadlines.js'
import { eventually, type Gate, gate } from '../support/event.ts'

type Numbers = readonly number[]

interface Scene {
  readonly merger: Merger<Numbers, Numbers>
  /** Calls as they were made, each answered when its gate opens: with the negatives, or an error. */
  readonly calls: { readonly request: Numbers; readonly answer: Gate<Error | null> }[]
  /** Does what was deferred. */
  readonly breathe: () => void
}

function scene({ isGathering = true, inFlightMax = 2, sizeMax = 1_000 } = {}): Scene {
  const calls: Scene['calls'] = []
  const deferred: (() => void)[] = []
  const merger = new Merger<Numbers, Numbers>({
    inFlightMax,
    sizeMax,
    waitingMax: 200,
    size: (request) => request.length,
    join: (requests) => requests.flat(),
    split: (reply, requests) => {
      let from = 0
      return requests.map(({ length }) => {
        from += length
        return reply.slice(from - length, from)
      })
    },
    call: async (request) => {
      const answer = gate<Error | null>()
      calls.push({ request, answer })
      const failure = await answer.passed
      if (failure !== null) throw failure
      return request.map((each) => -each)
    },
    ...(isGathering ? { defer: (run) => deferred.push(run) } : {}),
  })
  const breathe = (): void => {
    for (const run of deferred.splice(0)) run()
  }
  return { merger, calls, breathe }
}

const requestsOf = ({ calls }: Scene): readonly Numbers[] => calls.map(({ request }) => request)

describe('gathering', () => {
  it('a request goes at once when nothing is under way, and another one beside it after what is ready', async () => {
    const all = scene()
    const { merger, calls, breathe } = all
    const first = merger.send([1])
    expect(requestsOf(all)).toEqual([[1]])
    const others = [merger.send([2, 3]), merger.send([4])]
    expect(requestsOf(all)).toEqual([[1]])
    breathe()
    breathe()
    expect(requestsOf(all)).toEqual([[1], [2, 3]])
    calls[0]?.answer.open(null)
    expect(await first).toEqual([-1])
    await eventually(() => calls.length === 3, 'the place of the first is taken')
    calls[1]?.answer.open(null)
    calls[2]?.answer.open(null)
    expect(await Promise.all(others)).toEqual([[-2, -3], [-4]])
  })

  it('a lone caller that comes again is never held up', async () => {
    const all = scene()
    for (let round = 0; round < 3; round += 1) {
      const sent = all.merger.send([round])
      expect(all.calls).toHaveLength(round + 1)
      all.calls[round]?.answer.open(null)
      expect(await sent).toEqual([-round])
    }
  })

  it('of many callers that come again and again, one half goes while the other half is under way', async () => {
    const { merger, calls, breathe } = scene()
    let answered = 0
    const caller = async (own: number): Promise<void> => {
      for (let round = 0; round < 20; round += 1) {
        expect(await merger.send([own])).toEqual([-own])
        answered += 1
      }
    }
    const done = Promise.all(Array.from({ length: 100 }, (_, own) => caller(own)))
    for (let next = 0; answered < 2_000; ) {
      breathe()
      if (next < calls.length) {
        calls[next]?.answer.open(null)
        next += 1
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
    await done
    const sizes = calls.slice(6, -6).map(({ request }) => request.length)
    expect([Math.min(...sizes) >= 45, Math.max(...sizes) <= 55]).toEqual([true, true])
  })
})

describe('with and without', () => {
  it.each([true, false])('order and size are kept, and one that is too large goes alone: %s', async (isGathering) => {
    const all = scene({ isGathering, inFlightMax: 1, sizeMax: 3 })
    const { merger, calls, breathe } = all
    const sent = [[1], [2], [3, 4], [5, 6, 7, 8], [9]].map((request) => merger.send(request))
    for (let next = 0; next < 4; next += 1) {
      breathe()
      await eventually(() => calls.length > next, `call ${next}`)
      calls[next]?.answer.open(null)
      await sent[[0, 2, 3, 4][next] ?? 0]
    }
    expect(await Promise.all(sent)).toEqual([[-1], [-2], [-3, -4], [-5, -6, -7, -8], [-9]])
    expect(requestsOf(all)).toEqual([[1], [2, 3, 4], [5, 6, 7, 8], [9]])
  })

  it.each([true, false])('a failure is told to all of its call and to nobody else: %s', async (isGathering) => {
    const { merger, calls, breathe } = scene({ isGathering, inFlightMax: 1 })
    const first = merger.send([1])
    const others = Promise.allSettled([merger.send([2]), merger.send([3])])
    calls[0]?.answer.open(null)
    expect(await first).toEqual([-1])
    breathe()
    await eventually(() => calls.length === 2, 'the second call')
    calls[1]?.answer.open(new Error('no'))
    expect((await others).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    breathe()
    const next = merger.send([4])
    breathe()
    await eventually(() => calls.length === 3, 'the third call')
    calls[2]?.answer.open(null)
    expect(await next).toEqual([-4])
  })

  it.each([true, false])('what does not fit any more is refused, and not done: %s', async (isGathering) => {
    const { merger } = scene({ isGathering, inFlightMax: 1 })
    void merger.send([0])
    void merger.send(Array.from({ length: 200 }, (_, index) => index))
    await expect(merger.send([1])).rejects.toMatchObject({ code: 'OVERLOADED', details: { outcome: 'notDone' } })
  })
})

describe('patience', () => {
  it('is counted from when a request was handed over, and says whether it was sent', async () => {
    let now = 0
    let fire: (() => void) | null = null
    const timers = { set: (run: () => void) => (fire = run), clear: () => (fire = null), defer: () => {} }
    const pass = (ms: number): void => {
      now += ms
      fire?.()
    }
    const calls: Gate<Error | null>[] = []
    const merger = new Merger<Numbers, Numbers>({
      inFlightMax: 1,
      sizeMax: 2,
      waitingMax: 200,
      size: (request) => request.length,
      join: (requests) => requests.flat(),
      split: (reply, requests) => requests.map((_, n) => [reply[n] ?? 0]),
      call: async (request) => {
        const answer = gate<Error | null>()
        calls.push(answer)
        const failure = await answer.passed
        if (failure !== null) throw failure
        return request
      },
      patience: {
        deadlines: new Deadlines({ monotonic: () => now }, timers),
        ms: 100,
        late: (isSent) => new Error(isSent ? 'sent' : 'not sent'),
      },
    })
    const outcomes = new Map<number, string>()
    const send = (n: number): void => {
      merger.send([n]).then(
        () => outcomes.set(n, 'done'),
        ({ message }: Error) => outcomes.set(n, message),
      )
    }
    const settled = async (...expected: readonly (readonly [number, string])[]): Promise<void> => {
      await eventually(() => outcomes.size >= expected.length, 'the outcomes')
      expect(outcomes).toEqual(new Map(expected))
    }
    send(1)
    send(2)
    pass(40)
    for (const n of [3, 4]) send(n)
    pass(30)
    calls[0]?.open(null)
    await settled([1, 'done'])
    // 2 and 3 are under way, 4 waits.
    expect(calls).toHaveLength(2)
    pass(30)
    await settled([1, 'done'], [2, 'sent'])
    pass(40)
    await settled([1, 'done'], [2, 'sent'], [3, 'sent'], [4, 'not sent'])
    send(5)
    calls[1]?.open(null)
    await eventually(() => calls.length === 3, 'what came later is sent')
    calls[2]?.open(null)
    await settled([1, 'done'], [2, 'sent'], [3, 'sent'], [4, 'not sent'], [5, 'done'])
    expect(calls).toHaveLength(3)
  })
})
