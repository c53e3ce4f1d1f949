/** `holdfast enqueue TYPE JSON`: stores one job from the command line; `-` reads the input from standard input. */
import { text as readAll } from 'node:stream/consumers'
import type { EnqueueOptions } from '../../index.ts'
import {
  defined,
  durationFlag,
  type FlagValues,
  instantFlag,
  numberFlag,
  parseJson,
  textFlag,
  UsageError,
} from '../arguments.ts'
import { type Command, withStore } from '../command.ts'

export const enqueueCommand: Command = {
  name: 'enqueue',
  usage: 'enqueue TYPE JSON [--queue NAME] [--delay 30s] … (JSON - reads standard input)',
  summary: 'store one job',
  options: {
    queue: { type: 'string' },
    priority: { type: 'string' },
    delay: { type: 'string' },
    'run-at': { type: 'string' },
    deadline: { type: 'string' },
    timeout: { type: 'string' },
    'max-attempts': { type: 'string' },
    key: { type: 'string' },
    'concurrency-key': { type: 'string' },
    metadata: { type: 'string' },
    'trace-id': { type: 'string' },
  },
  words: [2, 2],
  async run(context) {
    const { words, flags, output } = context
    const [type = '', json = ''] = words
    const input = parseJson(json === '-' ? await readAll(process.stdin) : json, 'JSON')
    const options = toOptions(flags)
    const { id, deduplicated, state } = await withStore(context, (store) => store.enqueue(type, input, options), {
      mayCreate: true,
    })
    output.result({ id, deduplicated, state }, () => {
      output.line({ text: id, style: 'id' }, deduplicated ? '  was there already under this key' : '')
    })
    return 0
  },
}

function toOptions(flags: FlagValues): EnqueueOptions {
  return defined({
    queue: textFlag(flags, 'queue'),
    priority: numberFlag(flags, 'priority'),
    delay: durationFlag(flags, 'delay'),
    runAt: instantFlag(flags, 'run-at'),
    deadline: instantFlag(flags, 'deadline'),
    timeout: durationFlag(flags, 'timeout'),
    maxAttempts: numberFlag(flags, 'max-attempts'),
    idempotencyKey: textFlag(flags, 'key'),
    concurrencyKey: textFlag(flags, 'concurrency-key'),
    metadata: toMetadata(textFlag(flags, 'metadata')),
    traceId: textFlag(flags, 'trace-id'),
  })
}

function toMetadata(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined
  const value = parseJson(text, '--metadata')
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new UsageError('--metadata: expected a JSON object')
}
