#!/usr/bin/env node
/**
 * The command line: finds the command, runs it, and turns whatever happens into an exit code (0 done, 1 failed, 2 bad usage
 * or input) and at most one line on standard error. A closed pipe (`| head`) ends it quietly.
 */
import { createRequire } from 'node:module'
import { findCommand, parseArguments, UsageError } from './arguments.ts'
import { cancelCommand, replayCommand, retryCommand } from './command/change.ts'
import { demoCommand } from './command/demo.ts'
import { doctorCommand } from './command/doctor.ts'
import { enqueueCommand } from './command/enqueue.ts'
import { nearest, showCommandHelp, showHelp } from './command/help.ts'
import { lanesCommand, pauseCommand, resumeCommand, statsCommand } from './command/lane.ts'
import { dlqCommand, explainCommand, jobCommand, jobsCommand } from './command/read.ts'
import { benchCommand, maintainCommand, migrateCommand } from './command/upkeep.ts'
import { workCommand } from './command/work.ts'
import type { Command, CommandContext, ExitCode } from './command.ts'
import { describeError } from './failure.ts'
import { mayColour, Output } from './output.ts'
import { ProgressBar } from './progress-bar.ts'

const COMMANDS: readonly Command[] = [
  demoCommand,
  enqueueCommand,
  workCommand,
  jobsCommand,
  jobCommand,
  explainCommand,
  cancelCommand,
  replayCommand,
  retryCommand,
  dlqCommand,
  lanesCommand,
  statsCommand,
  pauseCommand,
  resumeCommand,
  maintainCommand,
  migrateCommand,
  doctorCommand,
  benchCommand,
]

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']
const SEE_HELP = 'see holdfast help'

const writeError = (line: string): void => {
  process.stderr.write(`holdfast: ${line}\n`)
}

function createOutput(isJson: boolean): Output {
  return new Output({
    isJson,
    isTerminal: process.stdout.isTTY === true,
    hasColour: mayColour(process.stdout, process.env),
    write: (text) => process.stdout.write(text),
  })
}

async function run(argv: readonly string[]): Promise<ExitCode> {
  const { name, rest, wantsHelp, wantsVersion } = findCommand(argv)
  const output = createOutput(argv.includes('--json'))
  if (name === 'version' || (name === null && wantsVersion)) {
    showVersion(output)
    return 0
  }
  if (name === 'help' || (name === null && wantsHelp)) {
    help(output, rest)
    return 0
  }
  if (name === null) throw new UsageError(`no command; ${SEE_HELP}`)
  const command = lookUp(name)
  const parsed = parseArguments(rest, command)
  if (parsed.flags.help === true) {
    showCommandHelp(output, command)
    return 0
  }
  checkEnvironment(process.env)
  const bar = new ProgressBar(process.stderr, process.env)
  const context: CommandContext = { ...parsed, output, bar, env: process.env, warn: writeError }
  return command.run(context)
}

function lookUp(name: string): Command {
  const command = COMMANDS.find((each) => each.name === name)
  if (command !== undefined) return command
  const near = nearest(
    name,
    COMMANDS.map((each) => each.name),
  )
  throw new UsageError(`unknown command '${name}'${near === null ? '' : `; did you mean '${near}'?`}; ${SEE_HELP}`)
}

function help(output: Output, rest: readonly string[]): void {
  const { words } = parseArguments(rest, { usage: 'help [COMMAND]', options: {}, words: [0, 1] })
  const [topic] = words
  if (topic === undefined) showHelp(output, COMMANDS)
  else showCommandHelp(output, lookUp(topic))
}

function showVersion(output: Output): void {
  const manifest = createRequire(import.meta.url)('../../../package.json') as { readonly version: string }
  output.result({ version: manifest.version }, () => output.line(manifest.version))
}

function checkEnvironment({ HOLDFAST_LOG: level }: NodeJS.ProcessEnv): void {
  if (level === undefined || LOG_LEVELS.includes(level)) return
  throw new UsageError(`HOLDFAST_LOG: expected one of ${LOG_LEVELS.join(', ')}`)
}

// A reader that has seen enough closes the pipe: that is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1)
})

let code: ExitCode
try {
  code = await run(process.argv.slice(2))
} catch (error) {
  const failed = describeError(error)
  writeError(failed.line)
  code = failed.code
}
// What a user's module left open (a socket, a timer) must not keep the process; the output is flushed first.
process.stdout.write('', () => process.exit(code))
