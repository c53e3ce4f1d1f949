/**
 * From the words of the command line to a command that runs, and from whatever happens to an exit code (0 done, 1 failed, 2 bad
 * usage or input) and at most one line on standard error. Called by `main.ts` with the streams of the process.
 */
import { VERSION } from '../index.ts'
import { findCommand, parseArguments, UsageError } from './arguments.ts'
import { cancelCommand, replayCommand, retryCommand } from './command/change.ts'
import { demoCommand } from './command/demo.ts'
import { doctorCommand } from './command/doctor.ts'
import { enqueueCommand } from './command/enqueue.ts'
import { nearest, showCommandHelp, showHelp } from './command/help.ts'
import { lanesCommand, pauseCommand, resumeCommand, statsCommand } from './command/lane.ts'
import { limitCommand } from './command/limit.ts'
import { dlqCommand, explainCommand, jobCommand, jobsCommand, logsCommand } from './command/read.ts'
import { benchCommand, maintainCommand, migrateCommand } from './command/upkeep.ts'
import { workCommand } from './command/work.ts'
import { workersCommand } from './command/workers.ts'
import type { Command, CommandContext, ExitCode } from './command.ts'
import { describeError } from './failure.ts'
import { mayColour, Output } from './output.ts'
import { ProgressBar, type Terminal } from './progress-bar.ts'

const COMMANDS: readonly Command[] = [
  demoCommand,
  enqueueCommand,
  workCommand,
  jobsCommand,
  jobCommand,
  logsCommand,
  explainCommand,
  cancelCommand,
  replayCommand,
  retryCommand,
  dlqCommand,
  lanesCommand,
  workersCommand,
  statsCommand,
  pauseCommand,
  resumeCommand,
  limitCommand,
  maintainCommand,
  migrateCommand,
  doctorCommand,
  benchCommand,
]

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']
const SEE_HELP = 'see holdfast help'

/** What a command sees of its process. */
export interface Surroundings {
  readonly env: NodeJS.ProcessEnv
  readonly stdout: Terminal
  readonly stderr: Terminal
}

export async function dispatch(argv: readonly string[], surroundings: Surroundings): Promise<ExitCode> {
  const warn = (line: string): void => {
    surroundings.stderr.write(`holdfast: ${line}\n`)
  }
  try {
    return await run(argv, surroundings, warn)
  } catch (error) {
    const failed = describeError(error)
    warn(failed.line)
    return failed.code
  }
}

function createOutput(isJson: boolean, { stdout, env }: Surroundings): Output {
  return new Output({
    isJson,
    isTerminal: stdout.isTTY === true,
    hasColour: mayColour(stdout, env),
    write: (text) => stdout.write(text),
  })
}

async function run(
  argv: readonly string[],
  surroundings: Surroundings,
  warn: (line: string) => void,
): Promise<ExitCode> {
  const { env, stderr } = surroundings
  const { name, rest, wantsHelp, wantsVersion } = findCommand(argv)
  const output = createOutput(argv.includes('--json'), surroundings)
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
  checkEnvironment(env)
  const bar = new ProgressBar(stderr, env)
  const context: CommandContext = { ...parsed, output, bar, env, warn }
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
  output.result({ version: VERSION }, () => output.line(VERSION))
}

function checkEnvironment({ HOLDFAST_LOG: level }: NodeJS.ProcessEnv): void {
  if (level === undefined || level === '' || LOG_LEVELS.includes(level)) return
  throw new UsageError(`HOLDFAST_LOG: expected one of ${LOG_LEVELS.join(', ')}`)
}
