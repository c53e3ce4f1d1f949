/** `holdfast help [COMMAND]` and the texts that point to it. */
import type { Command } from '../command.ts'
import type { Output } from '../output.ts'

const GLOBAL_FLAGS = [
  ['--url URL', 'the store: memory:, sqlite:PATH, redis://HOST:PORT; also from HOLDFAST_URL'],
  ['--namespace NS', 'the namespace in the store; default `default`'],
  ['--json', 'one JSON object on standard output, in place of tables'],
  ['--help, --version', ''],
] as const

export function showHelp(output: Output, commands: readonly Command[]): void {
  const names = commands.map(({ name, summary }) => ({ name, summary }))
  output.result({ commands: names }, () => {
    output.line('holdfast: jobs that survive crashes')
    output.line('')
    output.line({ text: 'usage: holdfast <command> [--url URL] [--namespace NS] [--json]', style: 'bold' })
    output.line('')
    for (const { name, summary } of names) output.line(`  ${name.padEnd(10)}`, summary)
    output.line('')
    for (const [flag, meaning] of GLOBAL_FLAGS) output.line(`  ${flag.padEnd(18)}`, meaning)
    output.line('')
    output.line('Exit codes: 0 done, 1 failed, 2 bad usage or input. holdfast help COMMAND tells more of one.')
  })
}

export function showCommandHelp(output: Output, { name, usage, summary, options }: Command): void {
  const flags = Object.keys(options).map((flag) => `--${flag}`)
  output.result({ name, usage: `holdfast ${usage}`, summary, flags }, () => {
    output.line({ text: `usage: holdfast ${usage}`, style: 'bold' })
    output.line(summary)
    if (flags.length > 0) output.line(`flags: ${flags.join(' ')}`)
  })
}

/** The known command that looks most like what was typed; null: none is near. */
export function nearest(typed: string, names: readonly string[]): string | null {
  const ranked = names.map((name) => ({ name, steps: editSteps(typed, name) })).sort((a, b) => a.steps - b.steps)
  const [best] = ranked
  return best !== undefined && best.steps <= Math.max(1, Math.floor(best.name.length / 3)) ? best.name : null
}

/** How many letters must be added, dropped, changed or swapped with a neighbour (optimal string alignment). */
function editSteps(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, column) => column)]
  const at = (row: number, column: number): number => rows[row]?.[column] ?? Number.POSITIVE_INFINITY
  for (let row = 1; row <= from.length; row += 1) {
    rows.push([row])
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[row - 1] === to[column - 1]
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      const steps = Math.min(
        at(row - 1, column - 1) + (isSame ? 0 : 1),
        at(row - 1, column) + 1,
        at(row, column - 1) + 1,
        isSwapped ? at(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY,
      )
      rows[row]?.push(steps)
    }
  }
  return at(from.length, to.length)
}
