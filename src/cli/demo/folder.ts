/**
 * Names the regular files under a folder one by one, never the whole list at once; symbolic links are not followed.
 * What vanishes while it is read is left out; a folder that may not be read is an error of the scan.
 */
import { execFile } from 'node:child_process'
import { lstat, opendir } from 'node:fs/promises'
import type { ScanInput } from './contracts.ts'
import { absolutePath } from './path.ts'

const GIT_OUTPUT_BYTES_MAX = 64 * 1024 * 1024
const NEVER = ['.git', 'node_modules']
const ZERO = 0

/** Paths relative to the folder, as bytes. */
export async function* listFiles({ folder, mode, skip }: ScanInput): AsyncGenerator<Buffer> {
  const tracked = mode === 'tracked' ? await listTracked(folder) : []
  const found = tracked.length > 0 ? tracked : walk(folder, mode === 'tracked' ? [...NEVER, 'dist'] : NEVER)
  const skipped = new Set(skip)
  for await (const relative of found) {
    if (!skipped.has(String(absolutePath(folder, relative.toString()))) && (await isFile(folder, relative)))
      yield relative
  }
}

/** What git tracks under the folder; nothing when it is no checkout or git is not there. */
function listTracked(folder: string): Promise<readonly Buffer[]> {
  const options = { cwd: folder, encoding: 'buffer', maxBuffer: GIT_OUTPUT_BYTES_MAX } as const
  return new Promise((resolve) => {
    execFile('git', ['ls-files', '-z'], options, (error, stdout) => resolve(error === null ? splitAtZeros(stdout) : []))
  })
}

function splitAtZeros(bytes: Buffer): readonly Buffer[] {
  const parts: Buffer[] = []
  let from = 0
  for (let at = bytes.indexOf(ZERO); at !== -1; at = bytes.indexOf(ZERO, from)) {
    parts.push(bytes.subarray(from, at))
    from = at + 1
  }
  return parts
}

async function* walk(root: string, excluded: readonly string[], inside: Buffer | null = null): AsyncGenerator<Buffer> {
  const here = inside === null ? root : absolutePath(root, inside)
  const folder = await opendir(here, { encoding: 'buffer' as BufferEncoding }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' && inside !== null) return null
    throw error
  })
  if (folder === null) return
  for await (const entry of folder) {
    const name = Buffer.from(entry.name)
    const relative = inside === null ? name : Buffer.concat([inside, Buffer.from('/'), name])
    if (entry.isDirectory()) {
      if (!excluded.includes(name.toString())) yield* walk(root, excluded, relative)
    } else yield relative
  }
}

async function isFile(folder: string, relative: Buffer): Promise<boolean> {
  try {
    return (await lstat(absolutePath(folder, relative))).isFile()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}
