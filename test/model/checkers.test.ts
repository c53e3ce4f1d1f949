/** The judges are judged first: every checker accepts good histories and names the fault in bad ones. */
import { describe, expect, test } from 'vitest'
import {
  checkFencing,
  checkLifecycle,
  checkLiveness,
  checkNoneLost,
  checkNoneOrphaned,
  checkNoneTaken,
  checkOneJobPerKey,
  checkOneLease,
  checkOutcomesMatch,
  checkPauses,
  checkPunctual,
  checkRunsExplained,
  checkSafety,
  checkTokensUnique,
  type Violation,
} from '../simulation/checkers.ts'
import type { Fact, Run } from '../simulation/history.ts'
import {
  bury,
  cancel,
  complete,
  dead,
  ended,
  enqueue,
  grant,
  jump,
  policy,
  progress,
  promote,
  reap,
  release,
  renew,
  retry,
  run,
  start,
  stored,
  token,
  told,
} from './written-history.ts'

type Case = readonly [name: string, history: Run]
interface Judged {
  readonly check: (run: Run) => Violation[]
  readonly good: readonly Case[]
  readonly bad: readonly Case[]
}

const facts = (...list: readonly Fact[]): Run => run({ facts: list })
const started = (...list: readonly Fact[]): Run => facts(enqueue(0, 'j'), grant(10, 'j'), ...list)
const over = (...list: readonly Fact[]): Run => started(reap(110, 'j', 10), ...list)
const again = (at: number): Fact => grant(at, 'j', { attempt: 2 })

const JUDGED: Readonly<Record<string, Judged>> = {
  'I1 none lost': {
    check: (history) => checkNoneLost(history),
    good: [
      [
        'accepted, then completed',
        run({ facts: [enqueue(0, 'j', { ref: 'r' })], produced: [told('r', 'j')], dump: [stored('j', 'completed')] }),
      ],
      ['an ambiguous call that was never executed', run({ produced: [told('r', null, { status: 'ambiguous' })] })],
      [
        'an ambiguous call that was executed',
        run({
          facts: [enqueue(0, 'j', { ref: 'r' })],
          produced: [told('r', null, { status: 'ambiguous' })],
          dump: [stored('j', 'completed')],
        }),
      ],
      ['accepted, ended and pruned by policy', run({ produced: [told('r', 'j')], pruned: new Set(['j']) })],
    ],
    bad: [
      ['accepted and absent', run({ produced: [told('r', 'j')] })],
      ['accepted and still queued after the drain', run({ produced: [told('r', 'j')], dump: [stored('j', 'queued')] })],
      [
        'created although its caller was told that it failed',
        run({ facts: [enqueue(0, 'j', { ref: 'r' })], produced: [told('r', null, { status: 'failed' })] }),
      ],
      ['created for a call that nobody made', facts(enqueue(0, 'j', { ref: 'r' }))],
      ['a handler ran for a job that was never enqueued', run({ effects: [start(5, 'j', 5)] })],
    ],
  },
  'I2 one lease': {
    check: checkOneLease,
    good: [
      ['granted again after a release', started(release(20, 'j', 10), grant(21, 'j'))],
      ['granted again at the moment of expiry', over(again(110))],
      [
        'the same grant given again to a claim that was repeated',
        started(grant(12, 'j', { token: token(10), resend: true })),
      ],
      ['reaped after the expiry that a renewal moved', started(renew(100, 'j', 10), reap(200, 'j', 10), again(201))],
    ],
    bad: [
      ['granted twice at once', started(again(20))],
      ['granted while a renewal keeps the lease', started(renew(100, 'j', 10), again(150))],
      ['reaped one millisecond early', started(reap(109, 'j', 10))],
      ['reaped after the first expiry but before the renewed one', started(renew(60, 'j', 10), reap(110, 'j', 10))],
    ],
  },
  'I3 tokens unique': {
    check: checkTokensUnique,
    good: [
      ['epochs grow', over(again(120))],
      ['two jobs share an epoch', facts(enqueue(0, 'a'), enqueue(0, 'b'), grant(10, 'a'), grant(10, 'b'))],
      ['a clock that went back raises the epoch by one', over(grant(50, 'j', { token: token(11), attempt: 2 }))],
      ['a repeated claim gets its grant again', started(grant(12, 'j', { token: token(10), resend: true }))],
    ],
    bad: [
      ['the same token after a reap', over(grant(120, 'j', { token: token(10) }))],
      ['the same epoch under another nonce', over(grant(120, 'j', { token: token(10, 'm') }))],
      ['a smaller epoch', over(grant(120, 'j', { token: token(9) }))],
      ['a held grant given to a claim that was not repeated', started(grant(12, 'j', { token: token(10) }))],
      ['a token without an epoch', facts(enqueue(0, 'j'), grant(10, 'j', { token: 'w:n.0' }))],
    ],
  },
  'I4 fencing': {
    check: checkFencing,
    good: [
      ['the holder completes', started(complete(20, 'j', 10))],
      ['the holder completes after expiry, before the reaper', started(complete(500, 'j', 10))],
      ['a stale holder is refused', over(again(120), complete(130, 'j', 10, { verdict: 'leaseLost' }))],
      [
        'a repeated settlement is recognised',
        started(complete(20, 'j', 10), complete(25, 'j', 10, { verdict: 'alreadyApplied' })),
      ],
      ['an early reaper is refused', started(reap(50, 'j', 10, { verdict: 'leaseLost' }))],
      [
        'forced cancellation ends the lease',
        started(cancel(20, 'j', { force: true }), renew(30, 'j', 10, { outcome: 'leaseLost' })),
      ],
    ],
    bad: [
      ['a stale holder completes', over(again(120), complete(130, 'j', 10))],
      ['a stale holder renews', over(again(120), renew(130, 'j', 10))],
      ['a stale holder writes progress', over(again(120), progress(130, 'j', 10))],
      ['a stale reaper takes a newer lease', over(again(120), reap(300, 'j', 10))],
      ['a settlement after the release', started(release(20, 'j', 10), complete(30, 'j', 10))],
      ['alreadyApplied for what never was', started(complete(20, 'j', 10, { verdict: 'alreadyApplied' }))],
      [
        'alreadyApplied for another kind',
        started(release(20, 'j', 10), dead(25, 'j', 10, { verdict: 'alreadyApplied' })),
      ],
      ['the holder is refused', started(complete(20, 'j', 10, { verdict: 'leaseLost' }))],
      ['the holder is told that its job is gone', started(renew(20, 'j', 10, { outcome: 'gone' }))],
    ],
  },
  'I5 lifecycle': {
    check: checkLifecycle,
    good: [
      ['queued, running, completed', run({ ...started(complete(20, 'j', 10)), dump: [stored('j', 'completed')] })],
      [
        'a release is not charged',
        run({
          ...started(release(20, 'j', 10), grant(30, 'j'), complete(40, 'j', 30)),
          dump: [stored('j', 'completed')],
        }),
      ],
      [
        'buried by its deadline while it waited, without a message',
        run({ facts: [enqueue(0, 'j')], dump: [stored('j', 'dlq', { attempts: 0 })] }),
      ],
      [
        'cancelled while it waited to retry',
        run({ ...started(retry(20, 'j', 10), cancel(30, 'j')), dump: [stored('j', 'cancelled')] }),
      ],
      [
        'a repeated claim is not charged',
        run({ ...started(grant(12, 'j', { token: token(10), resend: true })), dump: [stored('j', 'running')] }),
      ],
    ],
    bad: [
      ['granted after it completed', started(complete(20, 'j', 10), again(30))],
      ['completed twice', started(complete(20, 'j', 10), complete(30, 'j', 10))],
      ['cancelled after it completed', started(complete(20, 'j', 10), cancel(30, 'j'))],
      [
        'granted after its cancellation was requested',
        started(cancel(20, 'j', { outcome: 'requested' }), reap(110, 'j', 10), again(120)),
      ],
      ['cancelled without force while it ran', started(cancel(20, 'j'))],
      ['buried while it ran', started(bury(20, 'j'))],
      ['promoted after it was cancelled', facts(enqueue(0, 'j'), cancel(5, 'j'), promote(6, 'j'))],
      ['granted before it was enqueued', facts(grant(10, 'j'))],
      ['an attempt that was not counted', over(grant(120, 'j', { attempt: 1 }))],
      [
        'stored attempts that disagree',
        run({ ...started(complete(20, 'j', 10)), dump: [stored('j', 'completed', { attempts: 2 })] }),
      ],
      [
        'stored as queued after it completed',
        run({ ...started(complete(20, 'j', 10)), dump: [stored('j', 'queued')] }),
      ],
      [
        'stored as completed with nobody to have done it',
        run({ facts: [enqueue(0, 'j')], dump: [stored('j', 'completed', { attempts: 0 })] }),
      ],
    ],
  },
  'I10 punctual': {
    check: (history) => checkPunctual(history, { calmFrom: 50, boundMs: 20 }),
    good: [
      ['started when it was due', facts(enqueue(0, 'j', { eligibleAt: 60 }), grant(60, 'j'))],
      ['late, but before the calm', facts(enqueue(0, 'j'), grant(49, 'j'))],
      ['due long before the calm, started soon after its beginning', facts(enqueue(0, 'j'), grant(70, 'j'))],
      [
        'due before the clock of the store went back',
        facts(enqueue(0, 'j', { eligibleAt: 60 }), jump(61, 61), grant(62, 'j', { storeNow: 30 })),
      ],
      ['promoted ahead of its time', facts(enqueue(0, 'j', { eligibleAt: 500 }), promote(60, 'j'), grant(61, 'j'))],
    ],
    bad: [
      ['after its deadline', facts(enqueue(0, 'j', { deadlineAt: 60 }), grant(60, 'j'))],
      ['one millisecond early', facts(enqueue(0, 'j', { eligibleAt: 60 }), grant(59, 'j'))],
      ['a retry before its delay was over', started(retry(20, 'j', 10, { delayMs: 30 }), again(49))],
      [
        'not yet due when the clock of the store went back',
        facts(enqueue(0, 'j', { eligibleAt: 60 }), jump(59, 59), grant(62, 'j', { storeNow: 30 })),
      ],
      ['later than the bound', facts(enqueue(60, 'j'), grant(81, 'j'))],
      ['waiting since before the calm and still not taken', facts(enqueue(0, 'j'), grant(71, 'j'))],
    ],
  },
  'I12 one job per key': {
    check: checkOneJobPerKey,
    good: [
      [
        'the second call gets the first id',
        run({
          facts: [enqueue(0, 'a', { key: 'k' }), enqueue(1, 'b', { key: 'k', outcome: 'deduplicated', result: 'a' })],
          produced: [told('1', 'a', { key: 'k' }), told('2', 'a', { key: 'k' })],
          dump: [stored('a', 'queued', { key: 'k' })],
        }),
      ],
      ['the same key in two lanes', facts(enqueue(0, 'a', { key: 'k' }), enqueue(1, 'b', { key: 'k', lane: 'm' }))],
      ['no key, no deduplication', facts(enqueue(0, 'a'), enqueue(1, 'b'))],
      [
        'a key used again after its job was pruned',
        run({ facts: [enqueue(0, 'a', { key: 'k' }), enqueue(9, 'b', { key: 'k' })], pruned: new Set(['a']) }),
      ],
    ],
    bad: [
      ['two jobs created', facts(enqueue(0, 'a', { key: 'k' }), enqueue(1, 'b', { key: 'k' }))],
      ['two jobs stored', run({ dump: [stored('a', 'queued', { key: 'k' }), stored('b', 'queued', { key: 'k' })] })],
      [
        'two callers told different ids',
        run({ produced: [told('1', 'a', { key: 'k' }), told('2', 'b', { key: 'k' })] }),
      ],
      [
        'a caller told an id that the store does not have under the key',
        run({ facts: [enqueue(0, 'a', { key: 'k' })], produced: [told('1', 'b', { key: 'k' })] }),
      ],
    ],
  },
  'I16 liveness': {
    check: (history) => checkLiveness(history, 1_000),
    good: [
      [
        'all ended in time',
        run({ dump: [stored('a', 'completed', { finishedAt: 1_000 }), stored('b', 'dlq', { finishedAt: 5 })] }),
      ],
      ['nothing to do', run({})],
      ['cancelled counts as ended', run({ dump: [stored('a', 'cancelled', { finishedAt: 7 })] })],
    ],
    bad: [
      ['stuck in the queue', run({ dump: [stored('a', 'queued')] })],
      ['running for ever', run({ dump: [stored('a', 'completed', { finishedAt: 5 }), stored('b', 'running')] })],
      ['ended after the deadline', run({ dump: [stored('a', 'completed', { finishedAt: 1_001 })] })],
    ],
  },
  'I19 runs explained': {
    check: (history) => checkRunsExplained(history, { faultFree: false }),
    good: [
      ['one grant, one run', run({ ...started(complete(20, 'j', 10)), effects: [start(11, 'j', 10)] })],
      ['a run for each attempt', run({ ...over(again(120)), effects: [start(11, 'j', 10), start(121, 'j', 120, 2)] })],
      [
        'a run of a grant that was given again later',
        run({
          ...started(grant(12, 'j', { token: token(10), resend: true }), complete(20, 'j', 10)),
          effects: [start(11, 'j', 10)],
        }),
      ],
      ['a grant whose worker died before it ran', started(reap(110, 'j', 10))],
    ],
    bad: [
      ['one grant, two runs', run({ ...started(), effects: [start(11, 'j', 10), start(12, 'j', 10)] })],
      ['a run without a grant', run({ facts: [enqueue(0, 'j')], effects: [start(11, 'j', 10)] })],
      ['a run before its grant', run({ ...started(), effects: [start(9, 'j', 10)] })],
      ['a run under the wrong attempt', run({ ...started(), effects: [start(11, 'j', 10, 2)] })],
      ['one attempt more than the budget', facts(enqueue(0, 'j'), grant(10, 'j', { attempt: 4, maxAttempts: 3 }))],
    ],
  },
  'I19 without faults': {
    check: (history) => checkRunsExplained(history, { faultFree: true }),
    good: [
      ['exactly one run', run({ ...started(complete(20, 'j', 10)), effects: [start(11, 'j', 10)] })],
      [
        'one more for each retry',
        run({ ...started(retry(20, 'j', 10), again(30)), effects: [start(11, 'j', 10), start(31, 'j', 30, 2)] }),
      ],
      ['cancelled before it ran', facts(enqueue(0, 'j'), cancel(5, 'j'))],
    ],
    bad: [
      ['a lost lease', run({ ...over(again(120)), effects: [start(11, 'j', 10), start(121, 'j', 120, 2)] })],
      [
        'a release for no reason',
        run({ ...started(release(20, 'j', 10), grant(30, 'j')), effects: [start(11, 'j', 10), start(31, 'j', 30)] }),
      ],
      [
        'two runs of one grant',
        run({ ...started(complete(20, 'j', 10)), effects: [start(11, 'j', 10), start(12, 'j', 10)] }),
      ],
    ],
  },
  'I17 pauses': {
    check: checkPauses,
    good: [
      ['granted after the lane was resumed', facts(enqueue(0, 'j'), policy(1, true), policy(5, false), grant(10, 'j'))],
      ['another lane is paused', facts(enqueue(0, 'j', { lane: 'm' }), policy(1, true), grant(10, 'j'))],
      [
        'a grant from before the pause is given again',
        started(policy(11, true), grant(12, 'j', { token: token(10), resend: true }), complete(20, 'j', 10)),
      ],
    ],
    bad: [
      ['granted while paused', facts(enqueue(0, 'j'), policy(1, true), grant(10, 'j'))],
      ['enqueued and granted while paused', facts(policy(1, true), enqueue(2, 'j'), grant(10, 'j'))],
      [
        'paused, resumed and paused again',
        facts(enqueue(0, 'j'), policy(1, true), policy(2, false), policy(3, true), grant(10, 'j')),
      ],
    ],
  },
  'I19 no orphans': {
    check: checkNoneOrphaned,
    good: [
      ['run', run({ ...started(), effects: [start(11, 'j', 10)] })],
      ['given back without being run', started(release(20, 'j', 10))],
      ['settled before the handler was called', started(dead(20, 'j', 10))],
    ],
    bad: [
      ['left to expire', over()],
      ['never heard of again', started()],
      ['run only under the next grant', run({ ...over(again(120)), effects: [start(121, 'j', 120, 2)] })],
    ],
  },
  'I19 none taken': {
    check: (history) => checkNoneTaken(history, (job) => job === 'timed'),
    good: [
      ['run, ended, run again', run({ effects: [start(11, 'j', 10), ended(19, 'j', 10), start(31, 'j', 30, 2)] })],
      ['two jobs at once', run({ effects: [start(11, 'j', 10), start(12, 'k', 10)] })],
      ['beyond its own timeout', run({ effects: [start(11, 'timed', 10), start(31, 'timed', 30, 2)] })],
    ],
    bad: [
      ['a third time', run({ effects: [start(1, 'j', 1), ended(2, 'j', 1), start(3, 'j', 3), start(4, 'j', 4)] })],
      ['run again while it runs', run({ effects: [start(11, 'j', 10), start(31, 'j', 30, 2)] })],
      [
        'the end of another run',
        run({ effects: [start(11, 'j', 10), ended(12, 'j', 9), start(31, 'j', 30, 2), ended(40, 'j', 10)] }),
      ],
    ],
  },
  'I4 outcomes match': {
    check: checkOutcomesMatch,
    good: [
      ['completed by the run that returned', run({ ...started(complete(20, 'j', 10)), effects: [ended(19, 'j', 10)] })],
      ['a run that threw was retried', run({ ...started(retry(20, 'j', 10)), effects: [ended(19, 'j', 10, 'threw')] })],
      ['a run returned too late', run({ ...started(complete(20, 'j', 10, { verdict: 'leaseLost' })) })],
    ],
    bad: [
      [
        'completed by a run that threw',
        run({ ...started(complete(20, 'j', 10)), effects: [ended(19, 'j', 10, 'threw')] }),
      ],
      ['completed by a run that never ended', started(complete(20, 'j', 10))],
      [
        'completed by another grant than the one that returned',
        run({ ...over(again(120), complete(130, 'j', 120)), effects: [ended(19, 'j', 10)] }),
      ],
    ],
  },
}

describe.each(Object.entries(JUDGED))('%s', (_name, { check, good, bad }) => {
  test('has at least three good and three bad histories', () => {
    expect(good.length).toBeGreaterThanOrEqual(3)
    expect(bad.length).toBeGreaterThanOrEqual(3)
  })

  test.each(good)('accepts: %s', (_case, history) => {
    expect(check(history)).toEqual([])
  })

  test.each(bad)('refuses: %s', (_case, history) => {
    expect(check(history)).not.toEqual([])
  })
})

test('a violation names the invariant, the job, the moment and what was seen', () => {
  const stale = over(again(120), complete(130, 'j', 10))
  expect(checkFencing(stale)).toEqual([
    { invariant: 'I4', job: 'j', at: 130, message: 'settle: applied for 10:w:n.0 while 120:w:n.0 holds the job' },
  ])
  expect(checkSafety(stale).map(({ invariant }) => invariant)).toContain('I4')
})
