/** A disk that is full as long as the test says so, for the processes that were started with it. Needs no right to mount anything. */
import { chmod, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildPreload } from '../preload.ts'
import { ServerFolder } from '../server-process.ts'

export class FullDisk {
  /** Start a server with it. */
  readonly env: Readonly<Record<string, string>>
  readonly #folder: ServerFolder
  readonly #path: string

  private constructor(library: string, folder: ServerFolder) {
    this.#folder = folder
    this.#path = join(folder.path, 'full')
    this.env = { LD_PRELOAD: library, HOLDFAST_FULL_DISK: this.#path }
  }

  static async make(): Promise<FullDisk> {
    const library = await buildPreload(new URL('full-disk.c', import.meta.url))
    const folder = await ServerFolder.make('disk')
    await chmod(folder.path, 0o755) // Some servers run under another account.
    return new FullDisk(library, folder)
  }

  async fill(): Promise<void> {
    await writeFile(this.#path, '')
  }

  async free(): Promise<void> {
    await rm(this.#path, { force: true })
  }

  /** When the servers have ended. */
  async remove(): Promise<void> {
    await this.#folder.remove()
  }
}
