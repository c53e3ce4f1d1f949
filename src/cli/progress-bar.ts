/**
 * One line on standard error that shows how far long work is, drawn only on a terminal and wiped when the work is done.
 * Elsewhere every call does nothing, so that pipes and logs hold the result alone.
 */
import { mayColour } from './output.ts'
import { plain, shorten, showNumber } from './text.ts'

const REDRAW_MS = 80
const BAR_CELLS = 28

export interface Terminal {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

export interface Progress {
  readonly done: number
  /** null: not known. */
  readonly total: number | null
  readonly note: string
}

export class ProgressBar {
  readonly #stream: Terminal
  readonly #hasColour: boolean
  readonly #now: () => number
  #drawnAt = Number.NEGATIVE_INFINITY
  #isDrawn = false

  /** `now` tells milliseconds on a clock that never goes back. */
  constructor(stream: Terminal, env: NodeJS.ProcessEnv, now: () => number = () => performance.now()) {
    this.#stream = stream
    this.#now = now
    this.#hasColour = mayColour(stream, env)
  }

  update(progress: Progress): void {
    if (this.#stream.isTTY !== true || this.#now() - this.#drawnAt < REDRAW_MS) return
    this.#drawnAt = this.#now()
    this.#isDrawn = true
    const width = Math.max(20, (this.#stream.columns || 80) - 1)
    const counts = `${showNumber(progress.done)}${progress.total === null ? '' : ` of ${showNumber(progress.total)}`}`
    const rest = shorten(plain(` ${counts}  ${progress.note}`), Math.max(8, width - BAR_CELLS - 1))
    this.#stream.write(`\r\u001b[2K${this.#bar(progress)}${rest}`)
  }

  /** Wipes the line. */
  clear(): void {
    if (this.#isDrawn) this.#stream.write('\r\u001b[2K')
    this.#isDrawn = false
    this.#drawnAt = Number.NEGATIVE_INFINITY
  }

  #bar({ done, total }: Progress): string {
    if (total === null || total === 0) return ''
    const full = Math.min(BAR_CELLS, Math.floor((done / total) * BAR_CELLS))
    const bar = `${'█'.repeat(full)}${'░'.repeat(BAR_CELLS - full)}`
    return this.#hasColour ? `\u001b[36m${bar}\u001b[39m` : bar
  }
}
