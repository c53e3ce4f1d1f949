/** Ctrl-C and SIGTERM for commands that run for long: the first asks, the second ends the process at once with code 1. */
import { spawn } from 'node:child_process'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** How long the end of the process may take before it is killed. */
const END_MS = 1_000

/**
 * Even `process.exit` waits for a thread inside a native call, however long that takes. So a small process is left behind that kills
 * this one if it is still there after a second.
 */
export function endForCertain(): void {
  const watch = `const parent = process.ppid
    setTimeout(() => { if (process.ppid === parent) process.kill(parent, 'SIGKILL') }, ${END_MS})`
  spawn(process.execPath, ['-e', watch], { detached: true, stdio: 'ignore', env: {} })
    .on('error', () => {})
    .unref()
}

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
    if (isStopping) {
      endForCertain()
      process.exit(1)
    }
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
