// What a handler may say to `ctx.log` and must not fail of. `ran` counts the code of the values that was run for it.

export function hostileLogs() {
  const seen = { ran: 0 }
  const trap = () => {
    seen.ran += 1
    throw new Error('ran')
  }
  const revoked = () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    return proxy
  }
  const cycle = { fn() {}, n: 10n }
  cycle.cycle = cycle
  const getter = (object, key) => Object.defineProperty(object, key, { get: trap, enumerable: true })
  const values = [
    [getter({}, 'x'), 'a getter'],
    [{ deep: { fn() {}, toJSON: trap, toString: trap, [Symbol.toPrimitive]: trap } }, 'code of the value'],
    [getter(new Error('kept'), 'stack')],
    [{ err: getter(new Error('kept'), 'cause') }, 'an error inside'],
    [revoked(), 'revoked'],
    [{ inside: revoked() }, 'revoked inside'],
    [new Proxy({}, { ownKeys: trapless, getPrototypeOf: trapless }), 'traps'],
    [cycle, 'a cycle'],
    [null],
    [undefined],
    [null, 'no fields'],
    [{}, Symbol('message')],
    [{}, () => 1],
    [Symbol('alone')],
    [getter({}, 'x'), { toString: trap, toJSON: trap }],
  ]
  return { seen, values }
}

const trapless = () => {
  throw new Error('a trap')
}
