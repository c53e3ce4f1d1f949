/**
 * Power cuts for servers that a test started: once the process is killed, takes back writes that no completed sync covered, as a
 * machine without power loses them. `power.c` keeps the journal that this reads.
 */
import {
  closeSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { chmod, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { SeededRandom } from '../../simulation/random.ts'
import { buildPreload } from '../preload.ts'
import { ServerFolder } from '../server-process.ts'

/** A lying disk says that it has synced and has not. */
export type Disk = 'honest' | 'lying'

/**
 * Which of the writes that were not synced are lost: `all`; `suffix`: of each file the last ones, the first of them torn;
 * `scattered`: each by the toss of a coin, so that later ones may be there without earlier ones.
 */
export type Loss = 'all' | 'suffix' | 'scattered'

export interface CutResult {
  readonly changes: number
  readonly unsynced: number
  readonly lost: number
}

interface Change {
  readonly offset: number
  readonly sizeBefore: number
  readonly length: number
  readonly saved: Buffer
}

interface FileHistory {
  readonly changes: Change[]
  /** How many of the changes a completed sync covers. */
  synced: number
}

const HEADER_BYTES = 64
const KINDS = ['', 'change', 'syncBegin', 'syncDone'] as const

export class PowerCut {
  /** Start a server with it. */
  readonly env: Readonly<Record<string, string>>
  readonly #folder: ServerFolder
  readonly #journal: string

  private constructor(library: string, folder: ServerFolder, disk: Disk) {
    this.#folder = folder
    this.#journal = join(folder.path, 'journal')
    this.env = { LD_PRELOAD: library, HOLDFAST_POWER: this.#journal, HOLDFAST_POWER_DISK: disk }
  }

  static async make(disk: Disk = 'honest'): Promise<PowerCut> {
    const library = await buildPreload(new URL('power.c', import.meta.url))
    const folder = await ServerFolder.make('power')
    await chmod(folder.path, 0o777) // Some servers run under another account.
    return new PowerCut(library, folder, disk)
  }

  /** Counts all that was written until now as synced, such as what a server wrote while it started. For servers at rest. */
  checkpoint(): void {
    truncateSync(this.#journal)
  }

  /** To be called when the process is dead and before it starts again. Touches files below `folder` only. */
  async cut(folder: string, loss: Loss = 'all', seed = 1): Promise<CutResult> {
    const random = new SeededRandom(seed)
    const paths = pathsBelow(folder)
    const result = { changes: 0, unsynced: 0, lost: 0 }
    for (const [file, { changes, synced }] of readJournal(readFileSync(this.#journal))) {
      const path = paths.get(file)
      const unsynced = changes.slice(synced)
      result.changes += changes.length
      if (path === undefined || unsynced.length === 0) continue
      const kept = keep(unsynced, loss, random)
      result.unsynced += unsynced.length
      result.lost += kept.filter((bytes, n) => bytes < (unsynced[n]?.length ?? 0)).length
      rewrite(path, unsynced, kept)
    }
    await rm(this.#journal)
    return result
  }

  /** When the servers have ended. */
  remove(): Promise<void> {
    return this.#folder.remove()
  }
}

/** For each change, how many of its bytes reach the disk. */
function keep(changes: readonly Change[], loss: Loss, random: SeededRandom): number[] {
  if (loss === 'all') return changes.map(() => 0)
  if (loss === 'scattered') return changes.map(({ length }) => (random.chance(0.5) ? length : 0))
  const whole = random.integer(0, changes.length)
  return changes.map(({ length }, n) => {
    if (n < whole) return length
    return n === whole && length > 0 ? random.integer(0, length - 1) : 0
  })
}

/** Takes back all changes, latest first, then does again what is kept of each. */
function rewrite(path: string, changes: readonly Change[], kept: readonly number[]): void {
  const fd = openSync(path, 'r+')
  const again: { offset: number; bytes: Buffer }[] = []
  for (const [n, { offset, length, sizeBefore, saved }] of [...changes.entries()].reverse()) {
    const written = Buffer.alloc(length)
    const bytes = written.subarray(0, readSync(fd, written, 0, length, offset)).subarray(0, kept[n])
    again.unshift({ offset, bytes })
    // Longer or shorter than before: the size goes back too.
    ftruncateSync(fd, sizeBefore)
    if (saved.length > 0) writeSync(fd, saved, 0, saved.length, offset)
  }
  for (const { offset, bytes } of again) if (bytes.length > 0) writeSync(fd, bytes, 0, bytes.length, offset)
  closeSync(fd)
}

function readJournal(journal: Buffer): Map<string, FileHistory> {
  const files = new Map<string, FileHistory>()
  const begun = new Map<bigint, number>()
  for (let at = 0; at + HEADER_BYTES <= journal.length; ) {
    const kind = KINDS[journal.readUInt32LE(at)]
    const savedBytes = journal.readUInt32LE(at + 4)
    const [device, inode, born, offset, sizeBefore, length, sync] = [0, 1, 2, 3, 4, 5, 6].map((n) =>
      journal.readBigUInt64LE(at + 8 + 8 * n),
    ) as [bigint, bigint, bigint, bigint, bigint, bigint, bigint]
    const file = `${device} ${inode} ${born}`
    const end = at + HEADER_BYTES + savedBytes
    if (end > journal.length) break // Killed while it wrote this record, and so before the change.
    const history = files.get(file) ?? { changes: [], synced: 0 }
    files.set(file, history)
    if (kind === 'change') {
      const saved = journal.subarray(at + HEADER_BYTES, end)
      history.changes.push({
        offset: Number(offset),
        sizeBefore: Number(sizeBefore),
        length: Number(length),
        saved,
      })
    } else if (kind === 'syncBegin') begun.set(sync, history.changes.length)
    else if (kind === 'syncDone') history.synced = Math.max(history.synced, begun.get(sync) ?? 0)
    else throw new Error('the journal of the power cut is damaged')
    at = end
  }
  return files
}

/** By device, inode and birth, and, for file systems that keep no birth, without it. */
function pathsBelow(folder: string): Map<string, string> {
  const paths = new Map<string, string>()
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const { dev, ino, birthtimeNs } = statSync(path, { bigint: true })
    paths.set(`${dev} ${ino} ${birthtimeNs}`, path)
    paths.set(`${dev} ${ino} 0`, path)
  }
  return paths
}
