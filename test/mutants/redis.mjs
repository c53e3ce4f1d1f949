/** Bugs planted in the client side of the Redis store: calls that may have been done, whose clock counts, keys, wake-ups, lists, settings. */

const REDIS = 'src/backends/redis'

const CALLS = 'test/redis/calls.test.ts'
const WAKE = 'test/redis/wake.test.ts'
const KEYS = 'test/redis/key.test.ts'
const MODEL = 'test/redis/model.test.ts'
const WAITER = 'test/redis/waiter.test.ts'
const CLUSTER_FAULTS = 'test/redis/cluster-faults.test.ts'
const CONFORMANCE = 'test/conformance/redis.test.ts'
const FAULTS = 'test/redis/faults.test.ts'
const STATES = 'test/redis/server-states.test.ts'
const FACTS = 'test/redis/server-facts.test.ts'

/** @type {readonly import('./catalog.mjs').Mutant[]} */
export const REDIS_MUTANTS = [
  {
    name: 'redis-delay-by-the-clock-of-the-client',
    file: `${REDIS}/definition.js`,
    find: `return \`\${priority} \${runAt ?? ''} \${runAt === null && delayMs > 0 ? delayMs : ''} `,
    replace: `return \`\${priority} \${runAt ?? (delayMs > 0 ? Date.now() + delayMs : '')}  `,
    suites: [CALLS],
    only: 'clock of the server',
    second: [MODEL],
  },
  {
    name: 'redis-due-by-the-clock-of-the-client',
    file: `${REDIS}/turn.js`,
    find: 'dueAt - Math.floor(grantee.nowUs / 1000)',
    replace: 'dueAt - Date.now()',
    suites: [CALLS],
    only: 'clock of the server',
    second: [MODEL],
  },
  {
    name: 'redis-deadline-by-the-clock-of-the-client',
    file: `${REDIS}/claim.js`,
    find: 'deadlineAt - granted.nowMs',
    replace: 'deadlineAt - Date.now()',
    suites: [CALLS],
    only: 'clock of the server',
    second: [MODEL],
  },
  {
    name: 'redis-unused-by-the-clock-of-the-client',
    file: `${REDIS}/control.js`,
    find: 'registry.dropUnused(await serverTimeMs(session))',
    replace: 'registry.dropUnused(Date.now())',
    suites: [CALLS],
    only: 'clock of the server',
  },
  {
    name: 'redis-unknown-call-sent-again',
    file: `${REDIS}/script-call.js`,
    find: `if (replyWordOf(error) !== 'NOSCRIPT')
            throw error;`,
    replace: `if (replyWordOf(error) !== 'NOSCRIPT') {
            if (error.details?.outcome !== 'unknown') throw error;
            return link.nextAttempt().then(() => execute(link, 'EVALSHA', line, call));
        }`,
    suites: [FAULTS],
    only: 'a call whose re',
    second: [CLUSTER_FAULTS],
    secondOnly: 'a cut reply',
  },
  {
    name: 'redis-cluster-sends-an-unknown-call-again',
    file: `${REDIS}/cluster.js`,
    find: `if (address === undefined || redirects === REDIRECTS_MAX)
            throw error;`,
    replace: `if (address === undefined && redirects < REDIRECTS_MAX)
            return { address: this.nodes.ownerOf(slot), isAsking: false, redirects: redirects + 1 };
        if (address === undefined || redirects === REDIRECTS_MAX)
            throw error;`,
    suites: [CLUSTER_FAULTS],
    only: 'a cut reply',
  },
  {
    name: 'redis-cluster-does-not-ask',
    file: `${REDIS}/cluster.js`,
    find: "isAsking: word === 'ASK'",
    replace: 'isAsking: false',
    suites: ['test/redis/cluster.test.ts'],
    only: 'a slot that moves',
  },
  {
    name: 'redis-lost-reply-told-as-not-done',
    file: `${REDIS}/errors.js`,
    find: "{ details: { outcome: 'unknown', server }, cause: bare(known) }",
    replace: "{ details: { outcome: 'notDone', server }, cause: bare(known) }",
    suites: ['test/redis/errors.test.ts'],
    second: [FAULTS],
    secondOnly: 'a call whose reply',
  },
  {
    name: 'redis-late-reply-told-as-not-done',
    file: `${REDIS}/errors.js`,
    find: "outcome: 'unknown', server, timeoutMs",
    replace: "outcome: 'notDone', server, timeoutMs",
    suites: [FAULTS],
    only: 'a call whose re',
    second: [CLUSTER_FAULTS],
    secondOnly: 'a node in a',
  },
  {
    name: 'redis-resend-claims-anew',
    file: `${REDIS}/turn.js`,
    find: 'this.request.resend ? await this.heldBy(claim) : []',
    replace: '[]',
    suites: [CALLS],
    only: 'sent again',
    second: [MODEL],
  },
  {
    name: 'redis-resend-takes-what-others-claimed',
    file: `${REDIS}/turn.js`,
    find: `const owner = \`:\${workerId}:\${nonce}.\``,
    replace: `const owner = \`:\${workerId}:\``,
    suites: [CALLS],
    only: 'sent again',
    second: [MODEL],
  },
  {
    name: 'redis-resend-looks-at-one-page',
    file: `${REDIS}/turn.js`,
    find: 'if (numberOf(reply[1]) < BATCH.leases)',
    replace: 'if (true)',
    suites: [CALLS],
    only: 'sent again',
  },
  {
    name: 'redis-script-unknown-to-the-server',
    file: `${REDIS}/script-call.js`,
    find: "if (replyWordOf(error) !== 'NOSCRIPT')",
    replace: 'if (true)',
    suites: [STATES],
    only: 'NOSCRIPT',
    second: [CALLS],
    secondOnly: 'sent again',
  },
  {
    name: 'redis-deadline-leaves-the-socket',
    file: `${REDIS}/connection.js`,
    find: `this.drop();
                reject(timedOut`,
    replace: 'reject(timedOut',
    suites: [FAULTS],
    only: 'after a late one',
    second: [WAITER],
    secondOnly: 'in a blackhole',
  },
  {
    name: 'redis-call-without-a-deadline',
    file: `${REDIS}/connection.js`,
    find: 'const deadline = this.deadlines.add(timeoutMs, () => this.wiring.timers.defer(expire));',
    replace: 'const deadline = null;',
    suites: [FAULTS],
    only: 'ends at its deadline',
    second: [WAITER],
    secondOnly: 'in a blackhole',
  },
  {
    name: 'redis-replica-taken-for-a-primary',
    file: `${REDIS}/connection.js`,
    find: 'if (!report.isPrimary && !acceptsReplica)',
    replace: 'if (false)',
    suites: [STATES],
    only: 'a replica',
  },
  {
    name: 'redis-write-that-no-replica-has',
    file: `${REDIS}/script-call.js`,
    find: 'if (count < waitReplicas)',
    replace: 'if (false)',
    suites: [STATES],
    only: 'a replica',
  },
  {
    name: 'redis-keys-of-a-lane-without-hash-tag',
    file: `${REDIS}/key.js`,
    find: `\`\${PREFIX}{\${namespace}:\${lane}}:\``,
    replace: `\`\${PREFIX}\${namespace}:\${lane}:\``,
    suites: [KEYS],
    second: ['test/conformance/redis-cluster.test.ts'],
    secondOnly: '1 a job without options',
  },
  {
    name: 'redis-wake-lists-without-hash-tag',
    file: `${REDIS}/key.js`,
    find: `\`\${PREFIX}{\${namespace}}:wake:\${lane}\``,
    replace: `\`\${PREFIX}\${namespace}:wake:\${lane}\``,
    suites: [KEYS],
    second: ['test/conformance/redis-cluster.test.ts'],
    secondOnly: '125 an idle',
  },
  {
    name: 'redis-claim-before-renewal',
    file: `${REDIS}/store.js`,
    find: 'if (request.claims.length > 0)',
    replace: 'if (false)',
    suites: [CALLS],
    only: 'order of calls',
  },
  {
    name: 'redis-change-of-server-not-seen',
    file: `${REDIS}/server-facts.js`,
    find: 'return before.runId === now.runId && before.replicationId === now.replicationId',
    replace: 'return true',
    suites: [FACTS],
    second: [STATES],
    secondOnly: 'told as changed',
  },
  {
    name: 'redis-poll-only-wake-up',
    file: `${REDIS}/wake.js`,
    find: 'session.servers.run(this.hint, [wakeKey(',
    replace: 'Promise.resolve(this.hint, [wakeKey(',
    suites: [WAKE],
    second: [CONFORMANCE],
    secondOnly: '125 a',
  },
  {
    name: 'redis-idle-worker-does-not-wait',
    file: `${REDIS}/wake.js`,
    find: `if (isWanted)
                    this.wait();`,
    replace: '',
    suites: [WAKE],
    second: [CONFORMANCE],
    secondOnly: '125 a',
  },
  {
    name: 'redis-wake-up-kept-by-a-busy-worker',
    file: `${REDIS}/wake.js`,
    find: `if (lane !== null && !this.wakeOwn(lane))
            this.push(lane);`,
    replace: `if (lane !== null)
            this.wakeOwn(lane);`,
    suites: [WAKE],
  },
  {
    name: 'redis-wake-up-for-all',
    file: `${REDIS}/wake.js`,
    find: `subscriber.listener(lane);
            return true;
        }
        return false;`,
    replace: `subscriber.listener(lane);
        }
        return this.hasIdle(lane);`,
    suites: [WAKE],
  },
  {
    name: 'redis-left-over-work-wakes-nobody',
    file: `${REDIS}/wake.js`,
    find: `this.passedAt.set(lane, now);
        this.push(lane);`,
    replace: 'this.passedAt.set(lane, now);',
    suites: [WAKE],
  },
  {
    name: 'redis-wake-up-by-the-script-in-a-cluster',
    file: `${REDIS}/wake.js`,
    find: 'servers.facts().isCluster || this.hasIdle(lane)',
    replace: 'this.hasIdle(lane)',
    suites: [WAKE],
  },
  {
    name: 'redis-lane-noted-after-its-jobs',
    file: `${REDIS}/enqueue.js`,
    find: `if (noted !== null)
        await noted;
    const list = context.lanes.listFor(lane);
    const answer = textOf(await context.session.run('job_add', lane, [id.slice(slash + 1), packDefinition(job)], list));`,
    replace: `const list = context.lanes.listFor(lane);
    const answer = textOf(await context.session.run('job_add', lane, [id.slice(slash + 1), packDefinition(job)], list));
    if (noted !== null)
        await noted;`,
    suites: [CALLS],
    only: 'order of calls',
  },
  {
    name: 'redis-noted-lanes-remembered-for-another-server',
    file: `${REDIS}/backend.js`,
    find: 'parts.store.registry.forget();',
    replace: '',
    suites: [CALLS],
    only: 'another server',
  },
  {
    name: 'redis-cursor-loses-a-lane',
    file: `${REDIS}/list.js`,
    find: 'encodeCursor(places) }',
    replace: 'encodeCursor(places.slice(0, -1)) }',
    suites: [CALLS],
    only: 'list of all lanes',
    second: [MODEL],
  },
  {
    name: 'redis-cursor-skips-a-job',
    file: `${REDIS}/list.js`,
    find: 'left.sequence + 1',
    replace: 'left.sequence',
    suites: [CALLS],
    only: 'list of all lanes',
    second: [MODEL],
  },
  {
    name: 'redis-half-a-turn-told-as-not-done',
    file: `${REDIS}/turn.js`,
    find: 'throw this.afterSomething(error)',
    replace: 'throw error',
    suites: [CALLS],
    only: 'done in part',
  },
  {
    name: 'redis-half-an-enqueue-told-as-not-done',
    file: `${REDIS}/enqueue.js`,
    find: 'if (!isInPart || ',
    replace: 'if (true || ',
    suites: [CALLS],
    only: 'done in part',
  },
  {
    name: 'redis-eviction-accepted',
    file: `${REDIS}/settings-check.js`,
    find: "isRefused: policy.startsWith('allkeys-') && !location.allowEviction",
    replace: 'isRefused: false',
    suites: [FACTS],
    second: [STATES],
    secondOnly: 'facts and warnings',
  },
  {
    name: 'redis-newer-keyspace-accepted',
    file: `${REDIS}/keyspace.js`,
    find: `if (!(version < current))
            throw tooNew(version, current);`,
    replace: `if (!(version < current))
            return;`,
    suites: [CALLS],
    only: 'another server',
  },
  {
    name: 'what-is-long-past-is-not-now',
    file: 'src/config.js',
    find: 'return ms > nowMs ? ms : null;',
    replace: 'return ms;',
    suites: ['test/conformance/redis.test.ts'],
    only: 'C077',
  },
]
