/** The logger that a client makes when it is given none. */
import { describe, expect, it } from 'vitest'
import { createLogger } from '#dist/src/telemetry.js'

describe('the level of the default logger', () => {
  it.each(['debug', 'warn', 'silent'])('may be %s', (level) => {
    expect(createLogger(level).level).toBe(level)
  })

  it.each(['loud', 'WARN', '30'])('is refused as %s, by its name', (level) => {
    expect(() => createLogger(level)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', details: { field: 'HOLDFAST_LOG' } }),
    )
  })

  it.each([undefined, ''])('is that of warnings when HOLDFAST_LOG is %j', (value) => {
    const before = process.env.HOLDFAST_LOG
    if (value === undefined) delete process.env.HOLDFAST_LOG
    else process.env.HOLDFAST_LOG = value
    try {
      expect(createLogger().level).toBe('warn')
    } finally {
      if (before === undefined) delete process.env.HOLDFAST_LOG
      else process.env.HOLDFAST_LOG = before
    }
  })
})
