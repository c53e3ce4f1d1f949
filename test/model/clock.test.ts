/** The timers of the platform behind ours. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemTimers } from '#dist/src/clock.js'

const DAY_MS = 86_400_000

describe('timers', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('wait for longer than the platform can in one go', () => {
    const run = vi.fn()
    systemTimers.set(run, 60 * DAY_MS)
    vi.advanceTimersByTime(60 * DAY_MS - 1)
    expect(run).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(run).toHaveBeenCalledOnce()
  })

  it('are cleared at any time of a long wait', () => {
    for (const days of [1, 30]) {
      const run = vi.fn()
      const handle = systemTimers.set(run, 60 * DAY_MS, true)
      vi.advanceTimersByTime(days * DAY_MS)
      systemTimers.clear(handle)
      vi.advanceTimersByTime(60 * DAY_MS)
      expect(run).not.toHaveBeenCalled()
      expect(vi.getTimerCount()).toBe(0)
    }
  })
})
