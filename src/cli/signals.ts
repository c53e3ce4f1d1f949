/** Ctrl-C and SIGTERM for commands that run for long: the first asks, the second ends the process at once with code 1. */
const SIGNALS = ['SIGINT', 'SIGTERM'] as const

export interface CaughtSignals {
  /** Resolves at the first signal. */
  readonly first: Promise<void>
  readonly isStopping: boolean
  /** Gives the signals back to the platform, unless one came: then the next must still end the process at once. */
  release(): void
}

export function catchSignals(): CaughtSignals {
  let isStopping = false
  let stop = (): void => {}
  const first = new Promise<void>((resolve) => {
    stop = resolve
  })
  const listener = (): void => {
    if (isStopping) process.exit(1)
    isStopping = true
    stop()
  }
  for (const signal of SIGNALS) process.on(signal, listener)
  return {
    first,
    get isStopping() {
      return isStopping
    },
    release: () => {
      if (isStopping) return
      for (const signal of SIGNALS) process.off(signal, listener)
    },
  }
}
