/** `holdfast help [COMMAND]` and the texts that point to it. */
import type { Command } from '../command.ts'
import type { Output } from '../output.ts'

const GLOBAL_FLAGS = [
  ['--url URL', 'the store: memory:, sqlite:PATH; also from HOLDFAST_URL'],
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

/** Levenshtein distance, row by row. */
function editSteps(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1]
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = (row[column - 1] ?? 0) + (to[column - 1] === letter ? 0 : 1)
      next.push(Math.min(replaced, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
