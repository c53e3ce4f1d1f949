/** What is said on the channel of a namespace, how often, and who of this process is woken by it. */
import { beforeEach, describe, expect, it } from 'vitest'
import { channelOf, markOf, payloadOf, probeOf, saidBy } from '#dist/src/backends/postgres/channel.js'
import { Notifier } from '#dist/src/backends/postgres/notifier.js'
import { Wake } from '#dist/src/backends/postgres/wake.js'
import { type VirtualProcess, World } from '../simulation/virtual-time.ts'

describe('a channel', () => {
  it('is of one schema and namespace, and short whatever they are called', () => {
    const long = 'n'.repeat(128)
    const names = [
      channelOf('a', 'b'),
      channelOf('a', 'c'),
      channelOf('c', 'b'),
      channelOf('ab', ''),
      channelOf(long, long),
    ]
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).toMatch(/^holdfast_[0-9a-f]{32}$/)
  })

  it('carries marks of lanes, and nothing when that is too many or unknown', () => {
    expect(saidBy(payloadOf(new Set(['a', 'b'])))).toEqual({ kind: 'ready', marks: [markOf('a'), markOf('b')] })
    const many = new Set(Array.from({ length: 5000 }, (_, index) => `lane-${index}`))
    for (const lanes of [new Set([null]), new Set(['a', null]), many]) {
      expect(payloadOf(lanes)).toBe('')
      expect(saidBy('')).toEqual({ kind: 'ready', marks: null })
    }
    const full = new Set([...many].slice(0, 100))
    expect(payloadOf(full).length).toBeLessThan(1000)
  })

  it('carries what others say there too, which is a hint about some lane', () => {
    for (const text of ['hello', 'a,b', ',', '{"x":1}']) expect(saidBy(text)).toEqual({ kind: 'ready', marks: null })
    expect(saidBy(probeOf('xyz'))).toEqual({ kind: 'probe', nonce: 'xyz' })
  })
})

describe('notifications', () => {
  let world: World
  let process: VirtualProcess
  let sent: { readonly at: number; readonly values: readonly unknown[] }[]
  let answer: () => Promise<void>
  let notifier: Notifier
  const start = 0

  beforeEach(() => {
    world = new World()
    process = world.process('notifier')
    sent = []
    answer = () => Promise.resolve()
    const link = {
      query: async (_: unknown, values: readonly unknown[]) => {
        sent.push({ at: world.time - start, values })
        await answer()
        return { rows: [], count: 1 }
      },
    }
    notifier = new Notifier({ link, channel: 'c', clock: process, timers: process })
  })
  const times = () => sent.map(({ at }) => at)

  it('go at once after a pause, and once in ten milliseconds otherwise', async () => {
    for (let ms = 0; ms < 100; ms += 1) {
      notifier.tell('a')
      await world.run(start + ms + 1)
    }
    expect(times()).toEqual([0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100])
    await world.run(start + 1000)
    expect(sent.length).toBe(11)
    notifier.tell('b')
    expect(sent.at(-1)).toEqual({ at: 1000, values: ['c', markOf('b')] })
  })

  it('are for all lanes of their time, each once', async () => {
    for (const lane of ['a', 'b', 'c', 'b']) notifier.tell(lane)
    await world.run(start + 100)
    expect(sent.map(({ values }) => values[1])).toEqual([markOf('a'), `${markOf('b')},${markOf('c')}`])
  })

  it('of cancellations, many at once, are one of their own', async () => {
    for (let count = 0; count < 50; count += 1) notifier.tellCancelled()
    notifier.tell('a')
    await world.run(start + 100)
    expect(sent.map(({ values }) => saidBy(String(values[1])).kind)).toEqual(['cancelled', 'cancelled', 'ready'])
  })

  it('wait for the one that is under way, and go on after one that failed', async () => {
    let fail = (_: Error): void => {}
    answer = () =>
      new Promise((_, reject) => {
        fail = reject
      })
    notifier.tell('a')
    notifier.tell('b')
    await world.run(start + 500)
    expect(times()).toEqual([0])
    fail(new Error('lost'))
    await world.settle()
    expect(times()).toEqual([0, 500])
  })

  it('end when closed', async () => {
    notifier.tell('a')
    notifier.tell('b')
    notifier.close()
    notifier.tell('c')
    await world.run(start + 100)
    expect(times()).toEqual([0])
  })
})

describe('whoever waits in this process', () => {
  let told: (string | null)[]
  let woken: string[]
  let wake: Wake
  let now = 0
  const worker = (name: string, ...lanes: string[]) =>
    wake.subscribe(lanes, (lane) => woken.push(`${name}:${lane ?? '*'}`))
  const listener = { isReliable: true, start: () => {}, close: () => Promise.resolve() }
  const notifier = {
    tell: (lane: string | null) => told.push(lane),
    tellCancelled: () => told.push('cancelled'),
    close: () => {},
  }

  beforeEach(() => {
    told = []
    woken = []
    now = 0
    wake = new Wake({ clock: { now: () => now, monotonic: () => now }, notifier, listener })
  })

  it('is woken alone, and others are told only when nobody is idle', () => {
    worker('a', 'x').want(true)
    worker('b', 'x', 'y').want(true)
    wake.ready('x')
    expect([woken, told]).toEqual([['a:x'], []])
    wake.ready('y')
    expect([woken, told]).toEqual([['a:x', 'b:y'], []])
    wake.ready('z')
    expect([woken.length, told]).toEqual([2, ['z']])
    wake.ready(null)
    expect([woken.at(-1), told]).toEqual(['a:*', ['z']])
  })

  it('hears what others say of its lanes, and looks again when it missed it while busy', () => {
    const idle = worker('idle', 'x', 'y')
    const busy = worker('busy', 'x')
    idle.want(true)
    wake.heard([markOf('z')])
    expect(woken).toEqual([])
    wake.heard([markOf('z'), markOf('x')])
    expect(woken).toEqual(['idle:x'])
    busy.want(true)
    expect(woken).toEqual(['idle:x', 'busy:*'])
    busy.want(false)
    busy.want(true)
    expect(woken.length).toBe(2)
    wake.heard(null)
    expect(woken.slice(2)).toEqual(['idle:*', 'busy:*'])
    idle.stop()
    wake.heard(null)
    expect(woken.length).toBe(5)
  })

  it('hears that something running was cancelled, busy or idle', () => {
    let heard = 0
    const subscription = wake.subscribe(
      ['x'],
      () => {},
      () => {
        heard += 1
      },
    )
    expect(subscription.hearsCancels).toBe(true)
    wake.cancelled()
    expect(told).toEqual(['cancelled'])
    wake.heardCancelled()
    subscription.stop()
    wake.heardCancelled()
    expect(heard).toBe(1)
  })

  it('passes on what it leaves behind, not too often', () => {
    for (now = 0; now < 200; now += 10) wake.left('x')
    wake.left('y')
    expect(told).toEqual(['x', 'x', 'x', 'x', 'y'])
  })

  it('relies on hints only where they are both said and heard', () => {
    const clock = { now: () => 0, monotonic: () => 0 }
    expect(worker('a', 'x').isReliable).toBe(true)
    for (const options of [
      { clock, notifier: null, listener },
      { clock, notifier, listener: null },
      { clock, notifier, listener: { ...listener, isReliable: false } },
    ]) {
      const subscription = new Wake(options).subscribe(['x'], () => {})
      expect([subscription.isReliable, subscription.hearsCancels]).toEqual([false, false])
    }
  })
})
