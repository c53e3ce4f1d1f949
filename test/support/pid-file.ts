/**
 * Files into which handlers write the number of a program that they have started. A file that is there may still be empty, and what it
 * says is killed only when it is the number of one process: 0 would be the tests' own group.
 */
import { readFileSync } from 'node:fs'
import { eventually } from './event.ts'

/** Null as long as the file or its number is missing. */
export function pidIn(file: string): number | null {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    return null
  }
  return /^[1-9]\d*\s*$/.test(text) ? Number(text) : null
}

export const writtenPid = (file: string): Promise<number> => eventually(() => pidIn(file), `a pid in ${file}`)

export function killPid(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

/** Ends what files tell of, should a test have failed to. */
export function killWritten(files: readonly string[]): void {
  for (const file of files) {
    const pid = pidIn(file)
    if (pid !== null) killPid(pid)
  }
}
