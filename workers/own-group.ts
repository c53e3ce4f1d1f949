/**
 * The end of a handler process that takes along what its handlers have started: all of them are in the group that it leads.
 * Used by `handler-process.ts` and `parent-watch.ts`.
 */

// Taken before any handler module is loaded, which may replace it.
const kill = process.kill.bind(process)
const { pid } = process

/** Kills the whole group, this process too. False where it leads none, as on Windows; then nothing has happened. */
export function endGroup(): boolean {
  try {
    return kill(-pid, 'SIGKILL')
  } catch {
    return false
  }
}
