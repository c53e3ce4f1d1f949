/**
 * Where the command line writes its results: tables and lines for people, one JSON object for programs. Colour only on a
 * terminal and never with `NO_COLOR` (https://no-color.org). Only this file and the progress bar touch the streams.
 */
import { maskUrls, plain, toJson } from './text.ts'

const STYLES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const
export type Style = keyof typeof STYLES

/** One cell: text, or text with a style. `id` highlights the last six characters, by which people tell jobs apart. */
export type Cell = string | { readonly text: string; readonly style: Style | 'id' }

const ID_TAIL = 6
/** A number, a share such as 3/7, a size or a span: what lines up at its right end. */
const NUMERIC = /^(-|[\d.,/]+( ?[A-Za-z%]{1,3})?)$/
const widthOf = (text: string): number => [...text].length

export interface OutputOptions {
  readonly isJson: boolean
  readonly isTerminal: boolean
  readonly hasColour: boolean
  readonly write: (text: string) => void
}

export class Output {
  readonly isJson: boolean
  readonly isTerminal: boolean
  readonly #hasColour: boolean
  readonly #write: (text: string) => void

  constructor(options: OutputOptions) {
    this.isJson = options.isJson
    this.isTerminal = options.isTerminal
    this.#hasColour = options.hasColour
    this.#write = options.write
  }

  /** The result: `value` as one JSON object with `--json`, else what `show` writes. */
  result(value: object, show: () => void): void {
    if (this.isJson) this.#write(`${maskUrls(toJson(value))}\n`)
    else show()
  }

  /** One line of cells; nothing stored in them can reach the terminal as control. */
  line(...cells: readonly Cell[]): void {
    this.#write(`${cells.map((cell) => this.#paint(cell, textOf(cell))).join('')}\n`)
  }

  /** Columns as wide as their widest cell, numbers to the right. */
  table(head: readonly string[], rows: readonly (readonly Cell[])[]): void {
    const columns = head.map((title, index) => {
      const texts = rows.map((row) => textOf(row[index] ?? ''))
      return {
        width: Math.max(title.length, ...texts.map(widthOf)),
        isNumeric: texts.every((text) => NUMERIC.test(text)),
      }
    })
    const layout = (row: readonly Cell[]): string =>
      columns
        .map(({ width, isNumeric }, index) => {
          const cell = row[index] ?? ''
          const text = textOf(cell)
          const gap = ' '.repeat(Math.max(0, width - widthOf(text)))
          return isNumeric ? gap + this.#paint(cell, text) : this.#paint(cell, text) + gap
        })
        .join('  ')
        .trimEnd()
    this.#write(`${layout(head.map((text) => ({ text, style: 'dim' })))}\n`)
    for (const row of rows) this.#write(`${layout(row)}\n`)
  }

  /** Name and value pairs, one a line. */
  fields(pairs: readonly (readonly [name: string, value: Cell])[]): void {
    const width = Math.max(0, ...pairs.map(([name]) => name.length))
    for (const [name, value] of pairs) this.line({ text: name.padEnd(width + 2), style: 'dim' }, value)
  }

  #paint(cell: Cell, text: string): string {
    if (typeof cell === 'string' || !this.#hasColour) return text
    if (cell.style !== 'id') return colour(text, cell.style)
    return text.slice(0, -ID_TAIL) + colour(text.slice(-ID_TAIL), 'cyan')
  }
}

const colour = (text: string, style: Style): string => `\u001b[${STYLES[style][0]}m${text}\u001b[${STYLES[style][1]}m`

const textOf = (cell: Cell): string => maskUrls(plain(typeof cell === 'string' ? cell : cell.text))

/** Whether a stream may be coloured. */
export function mayColour(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
}
