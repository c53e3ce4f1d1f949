/** What a host does with a run that it can give to nobody. */
import { expect, test } from 'vitest'
import { LostSlots } from '#dist/src/actors/lost-slots.js'
import { ModuleHost } from '#dist/src/actors/module-host.js'
import type { PoolRun } from '#dist/src/actors/thread-run.js'
import { systemTimers } from '#dist/src/clock.js'
import { behaviour, recorder, task } from '../support/thread-pool.ts'

/** Makes one thread and then no more. */
class Exhausted extends ModuleHost {
  readonly sent: PoolRun[] = []
  readonly size = 1

  async load(): Promise<void> {}

  abort(): void {}

  protected send(run: PoolRun): void {
    if (this.sent.length > 0) throw new Error('spawn EAGAIN')
    this.sent.push(run)
  }

  protected end(): null {
    return null
  }

  protected drain(): void {}

  protected resized(): void {}

  async endAll(): Promise<void> {}

  answer(): void {
    const [run] = this.sent
    if (run !== undefined) this.replied(run, [0, 'done'])
  }
}

test('a run that no thread or process can be made for crashes, and its slot is free again', async () => {
  const { isolation } = task(null)
  const { services } = recorder()
  const host = new Exhausted({
    ...{ isolation, hrefs: [behaviour.href], slots: 2, timers: systemTimers },
    ...{ lost: new LostSlots(), onIdleCrash: () => undefined },
  })
  const runs = Array.from({ length: 5 }, (_, n) => host.run(task(n), services))
  const [first, ...others] = runs.map((run) => run?.outcome)
  for (const outcome of await Promise.all(others)) {
    expect(outcome).toMatchObject({ kind: 'crashed', failure: { code: 'PANIC' } })
    expect(outcome).toHaveProperty('failure.message', expect.stringContaining('spawn EAGAIN'))
  }
  host.answer()
  expect(await first).toEqual({ kind: 'succeeded', output: 'done' })
})
