/** Commands that change one job: `cancel`, `replay`, `retry`. */
import type { ReplayOptions } from '../../index.ts'
import { defined, instantFlag, parseJson, textFlag } from '../arguments.ts'
import { type Command, withStore } from '../command.ts'

const CANCEL_LINES = {
  cancelled: 'cancelled',
  requested:
    'cancellation requested: the signal of its handler fires; it is cancelled when that ends, or when its lease runs out',
  already_terminal: 'the job had ended already',
} as const

export const cancelCommand: Command = {
  name: 'cancel',
  usage: 'cancel ID [--force]',
  summary: 'cancel a job; --force takes a running one from its worker at once',
  options: { force: { type: 'boolean' } },
  words: [1, 1],
  async run(context) {
    const [id = ''] = context.words
    const force = context.flags.force === true
    const outcome = await withStore(context, (store) => store.cancel(id, { force }))
    context.output.result({ id, outcome }, () => context.output.line(CANCEL_LINES[outcome]))
    return 0
  },
}

export const replayCommand: Command = {
  name: 'replay',
  usage: 'replay ID [--queue NAME] [--run-at INSTANT] [--input JSON]',
  summary: 'make a new job from an ended one',
  options: { queue: { type: 'string' }, 'run-at': { type: 'string' }, input: { type: 'string' } },
  words: [1, 1],
  async run(context) {
    const { flags, output } = context
    const [source = ''] = context.words
    const input = textFlag(flags, 'input')
    const options: ReplayOptions = {
      ...defined({ queue: textFlag(flags, 'queue'), runAt: instantFlag(flags, 'run-at') }),
      ...(input === undefined ? {} : { input: parseJson(input, '--input') }),
    }
    const { id } = await withStore(context, (store) => store.replay(source, options))
    output.result({ id, replayOf: source }, () => output.line({ text: id, style: 'id' }))
    return 0
  },
}

export const retryCommand: Command = {
  name: 'retry',
  usage: 'retry ID',
  summary: 'make a scheduled or retrying job ready now',
  options: {},
  words: [1, 1],
  async run(context) {
    const [id = ''] = context.words
    await withStore(context, (store) => store.retryNow(id))
    context.output.result({ id, ready: true }, () => context.output.line('ready now'))
    return 0
  },
}
