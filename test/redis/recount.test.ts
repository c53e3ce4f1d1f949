/** The recount finds nothing wrong with a sound namespace, and each kind of damage that is planted in it. */
import { expect, test } from 'vitest'
import type { Column, Dump } from './dump.ts'
import { recount } from './recount.ts'

const NOW = 1_800_000_000_000
const TOKEN = `${NOW}000:w1:n1.0`

type Lane = Map<string, Map<string, string> | Map<string, number> | string[]>

const sequenceOf = (number: number): string => String(number).padStart(14, '0')
const orderOf = (number: number, at = NOW): string => `${at}${sequenceOf(number)}`

interface Shape {
  readonly priority?: number
  readonly deadline?: number
  readonly runAt?: number
  readonly key?: string
}

function definition(number: number, { priority = 0, deadline, runAt, key }: Shape = {}): string {
  const options = key === undefined ? '' : JSON.stringify({ idempotencyKey: key })
  return `${NOW} ${sequenceOf(number)} ${priority} ${deadline ?? ''} ${runAt ?? ''}\nsend\n${options}\nj1`
}

const run = (state: string, number: number, runAt = NOW): string =>
  `${state}${TOKEN}|1|0|${sequenceOf(number)}|${NOW},${NOW},${runAt}`

/** One job in every place: fresh, of priority, later, after a retry, running, asked to cancel, and the three ends. */
function soundLane(): Lane {
  const later = NOW + 500
  return new Map<string, Map<string, string> | Map<string, number> | string[]>([
    [
      'meta',
      new Map([
        ['sequence', '9'],
        ['removed', '1'],
      ]),
    ],
    [
      'defs',
      new Map([
        ['fresh', definition(2, { key: 'k', deadline: later })],
        ['first', definition(3, { priority: 5 })],
        ['later', definition(4, { runAt: later, deadline: later + 1 })],
        ['again', definition(5)],
        ['running', definition(6)],
        ['done', definition(7)],
        ['stopped', definition(8)],
        ['dead', definition(9)],
      ]),
    ],
    [
      'run',
      new Map([
        ['again', run('W', 5, later)],
        ['running', run('X', 6)],
        ['done', `${run('C', 7)}|1|`],
        ['stopped', `${run('K', 8)}|x|`],
        ['dead', `${run('D', 9)}||PANIC`],
      ]),
    ],
    ['fifo', [orderOf(1), `${orderOf(2)}fresh`]],
    ['ready', new Map([[`${orderOf(3)}first`, -5]])],
    ['scheduled', new Map([[`${sequenceOf(4)}0:later`, later]])],
    ['retrying', new Map([[`${sequenceOf(5)}0:again`, later]])],
    [
      'aside',
      new Map([
        ['first', 3],
        ['later', 4],
        ['again', 5],
      ]),
    ],
    [
      'deadlines',
      new Map([
        ['fresh', later],
        ['later', later + 1],
      ]),
    ],
    ['leases', new Map([['running', later]])],
    ['completed', new Map([['done', 7]])],
    ['cancelled', new Map([['stopped', 8]])],
    ['dlq', new Map([['dead', 9]])],
    ['outputs', new Map([['done', 'j2']])],
    [
      'keep',
      new Map([
        ['done', later],
        ['dead', later],
      ]),
    ],
    ['keep_outputs', new Map([['done', later]])],
    ['failures', new Map([['dead', '{}']])],
    ['terms', new Map([['again', '{}']])],
    ['history', new Map([['dead', '']])],
    ['progress', new Map([['running', 'j1']])],
    ['logs', new Map([['running', '7 1 1\n7 1 {}\n']])],
    ['idempotency', new Map([['k', 'fresh']])],
    ['keyed', new Map([['fresh', 'k']])],
  ])
}

const columnOf = (content: Map<string, string> | Map<string, number> | string[]): Column => {
  if (Array.isArray(content)) return { type: 'list', items: content }
  const isScored = [...content.values()].every((value) => typeof value === 'number')
  return isScored
    ? { type: 'zset', scores: content as Map<string, number> }
    : { type: 'hash', fields: content as Map<string, string> }
}

function dumpOf(lane: Lane): Map<string, Column> {
  return new Map<string, Column>([
    ['hf:{ns}:keyspace', { type: 'string', value: '1' }],
    ['hf:{ns}:lanes', { type: 'zset', scores: new Map([['mail', NOW]]) }],
    ['hf:{ns}:wake:mail', { type: 'list', items: ['1'] }],
    ...[...lane].map(([role, content]): [string, Column] => [`hf:{ns:mail}:${role}`, columnOf(content)]),
  ])
}

function damaged(lane: Lane, role: string): Map<string, string | number> & string[] {
  return lane.get(role) as unknown as Map<string, string | number> & string[]
}

test('a sound namespace', () => {
  expect(recount(dumpOf(soundLane()), 'ns')).toEqual([])
  expect(recount(new Map(), 'ns')).toEqual([])
  expect(recount(dumpOf(new Map([['meta', new Map([['sequence', '3']])]])), 'ns')).toEqual([])
})

/** What is done to the lane, and what must be said of it. */
const DAMAGES: readonly (readonly [says: string, (lane: Lane) => unknown])[] = [
  ['first in state - is in no place', (lane) => damaged(lane, 'ready').clear()],
  ['fresh in state - is in no place', (lane) => damaged(lane, 'fifo').pop()],
  ['done in state C is in no place', (lane) => damaged(lane, 'completed').delete('done')],
  ['running in state X is in no place', (lane) => damaged(lane, 'leases').delete('running')],
  ['again in state W is in no place', (lane) => damaged(lane, 'retrying').clear()],
  ['done in state C is in completed and leases', (lane) => damaged(lane, 'leases').set('done', 1)],
  ['dead in state D is in completed and dlq', (lane) => damaged(lane, 'completed').set('dead', 9)],
  ['running in state - is in leases', (lane) => damaged(lane, 'run').delete('running')],
  ['leases has ghost, which is not in defs', (lane) => damaged(lane, 'leases').set('ghost', 1)],
  ['dlq has ghost, which is not in defs', (lane) => damaged(lane, 'dlq').set('ghost', 1)],
  ['ready has ghost, which is not in defs', (lane) => damaged(lane, 'ready').set(`${orderOf(1)}ghost`, 0)],
  ['scheduled has ghost, which is', (lane) => damaged(lane, 'scheduled').set(`${sequenceOf(1)}0:ghost`, 1)],
  ['fifo has ghost, which is not in defs', (lane) => damaged(lane, 'fifo').push(`${orderOf(3)}ghost`)],
  ['aside has ghost, which is not in defs', (lane) => damaged(lane, 'aside').set('ghost', 1)],
  ['deadlines has ghost, which is not in defs', (lane) => damaged(lane, 'deadlines').set('ghost', 1)],
  ...['run', 'failures', 'terms', 'history', 'progress', 'logs'].map(
    (role) =>
      [`${role} has ghost, which is not in defs`, (lane: Lane) => damaged(lane, role).set('ghost', 'x')] as const,
  ),
  ['the log of running has 1 lines, but says 7 1 2', (lane) => damaged(lane, 'logs').set('running', '7 1 2\n7 1 {}\n')],
  ['the run of dead lacks an end', (lane) => damaged(lane, 'run').set('dead', run('D', 9))],
  ['the run of again tells an end', (lane) => damaged(lane, 'run').set('again', `${run('W', 5)}||`)],
  ['keep has running, which has not ended', (lane) => damaged(lane, 'keep').set('running', 1)],
  ['outputs has running, which is not completed', (lane) => damaged(lane, 'outputs').set('running', 'j1')],
  ['keep_outputs has dead, which has no output', (lane) => damaged(lane, 'keep_outputs').set('dead', 1)],
  ['keyed has ghost, which is not in defs', (lane) => damaged(lane, 'keyed').set('ghost', 'x')],
  ['keyed has fresh as nothing, not k', (lane) => damaged(lane, 'keyed').delete('fresh')],
  [
    'idempotency has k for undefined, not fresh',
    (lane) => damaged(lane, 'idempotency').set('x', 'dead') && damaged(lane, 'idempotency').delete('k'),
  ],
  ['idempotency has x for ghost, which is not so named', (lane) => damaged(lane, 'idempotency').set('x', 'ghost')],
  ['aside has fresh at 2', (lane) => damaged(lane, 'aside').set('fresh', 2)],
  ['aside has first at no place', (lane) => damaged(lane, 'aside').delete('first')],
  ['deadlines has fresh at no place', (lane) => damaged(lane, 'deadlines').delete('fresh')],
  ['deadlines has first at 7, not none', (lane) => damaged(lane, 'deadlines').set('first', 7)],
  ['meta counts 2 removed from fifo, which has 1', (lane) => damaged(lane, 'meta').set('removed', '2')],
  ['meta counts 1 removed from fifo, which has 0', (lane) => damaged(lane, 'fifo').shift()],
  ['fifo has nothing but removed entries', (lane) => damaged(lane, 'fifo').pop()],
  ['out of order', (lane) => damaged(lane, 'fifo').reverse()],
  ['fifo has fresh as', (lane) => damaged(lane, 'fifo').splice(1, 1, `${orderOf(2, NOW + 1)}fresh`)],
  ['fifo has first of priority 5', (lane) => damaged(lane, 'fifo').push(`${orderOf(3)}first`)],
  ['ready has first at 5, its priority is 5', (lane) => damaged(lane, 'ready').set(`${orderOf(3)}first`, 5)],
  ['scheduled has later at 1', (lane) => damaged(lane, 'scheduled').set(`${sequenceOf(4)}0:later`, 1)],
  ['completed has done at 1', (lane) => damaged(lane, 'completed').set('done', 1)],
  ['done has sequence 00000000000007 after the last, 6', (lane) => damaged(lane, 'meta').set('sequence', '6')],
  ['two jobs have sequence', (lane) => damaged(lane, 'defs').set('dead', definition(8))],
  ['the run of dead has sequence', (lane) => damaged(lane, 'run').set('dead', run('D', 1))],
  ['the record of dead cannot be read', (lane) => damaged(lane, 'run').set('dead', 'D')],
  ['the record of fresh cannot be read', (lane) => damaged(lane, 'defs').set('fresh', 'x')],
  ['meta has a field size', (lane) => damaged(lane, 'meta').set('size', '8')],
  ['meta counts 1 orphans', (lane) => damaged(lane, 'meta').set('orphans', '1')],
  ['attic is an unexpected hash', (lane) => lane.set('attic', new Map([['a', 'b']]))],
  ['outputs is an unexpected list', (lane) => lane.set('outputs', ['done'])],
  ['without jobs, and yet it has', (lane) => lane.delete('defs')],
]

test.each(DAMAGES)('%s', (says, damage) => {
  const lane = soundLane()
  damage(lane)
  expect(recount(dumpOf(lane), 'ns').some((fault) => fault.includes(says))).toBe(true)
})

test('workers without a beat, and beats without a worker', () => {
  const extra: Dump = new Map([
    ...dumpOf(soundLane()),
    [
      'hf:{ns}:workers',
      {
        type: 'hash',
        fields: new Map([
          ['a', '{}'],
          ['b', '{}'],
        ]),
      },
    ],
    [
      'hf:{ns}:beats',
      {
        type: 'zset',
        scores: new Map([
          ['b', 1],
          ['c', 1],
        ]),
      },
    ],
  ])
  expect(recount(extra, 'ns')).toEqual(['worker a has no beat', 'the beat of c has no worker'])
})

test('keys that nobody knows, and lanes that nobody noted', () => {
  const extra: Dump = new Map([...dumpOf(soundLane()), ['hf:{ns}:attic', { type: 'string', value: '' }]])
  expect(recount(extra, 'ns')).toEqual(['unknown key hf:{ns}:attic'])
  const unknown = dumpOf(soundLane())
  unknown.delete('hf:{ns}:lanes')
  expect(recount(unknown, 'ns')).toEqual(['mail: not in the registry of lanes'])
})
