/** From what a claim script answers to jobs with their leases. The script and this file make the same token from the same parts. */
import type { ClaimedJob } from '../protocol/index.ts'
import { leaseToken, nextEpochUs } from '../rules.ts'
import { type ClaimedDefinition, unpackClaimed } from './definition.ts'
import { parseRun, parseTerms, type Run, type Terms } from './record.ts'
import { bufferOf, listOf, optionalText, textOf } from './reply.ts'
import type { RedisReply } from './servers.ts'

/** Who claims, and when by the server's clock. */
export interface Grantee {
  readonly lane: string
  readonly workerId: string
  readonly nonce: string
  /** Of the first job. */
  readonly ordinal: number
  readonly nowUs: number
}

interface Granted {
  readonly id: string
  readonly lane: string
  readonly token: string
  readonly attempt: number
  readonly crashes: number
  readonly terms: Terms | null
  readonly nowMs: number
}

function claimedJob(definition: ClaimedDefinition, granted: Granted): ClaimedJob {
  const { options, deadlineAt } = definition
  const { terms } = granted
  return {
    id: granted.id,
    type: definition.type,
    lane: granted.lane,
    payload: definition.payload,
    token: granted.token,
    attempt: granted.attempt,
    maxAttempts: terms?.maxAttempts ?? definition.maxAttempts,
    maxAttemptsFixed: options.maxAttemptsFixed ?? false,
    crashes: granted.crashes,
    maxCrashes: definition.maxCrashes,
    retry: terms?.retry ?? options.retry ?? null,
    timeoutMs: options.timeoutMs ?? null,
    deadlineAt,
    deadlineInMs: deadlineAt === null ? null : deadlineAt - granted.nowMs,
    metadata: options.metadata ?? null,
    traceId: options.traceId ?? null,
    keepResultMs: options.keepResultMs ?? null,
  }
}

/** What a claim got; of the damaged ones nothing is known but their tokens. */
export interface ReadGrant {
  readonly jobs: readonly ClaimedJob[]
  readonly damaged: readonly { readonly local: string; readonly token: string }[]
}

/** `ids, definitions, runs before, terms`, the last two empty when no job ran before. */
export function readGrant(reply: readonly RedisReply[], grantee: Grantee): ReadGrant {
  const { lane, workerId, nonce, ordinal, nowUs } = grantee
  const [ids = [], definitions, before, terms] = reply.map(listOf)
  const nowMs = Math.floor(nowUs / 1000)
  const jobs: ClaimedJob[] = []
  const damaged: { local: string; token: string }[] = []
  ids.forEach((id, index) => {
    const previous = optionalText(before?.[index])
    const run = previous === null || previous === '' ? null : parseRun(previous)
    const token = leaseToken(nextEpochUs(run?.leaseEpoch ?? 0, nowUs), workerId, nonce, ordinal + index)
    const local = textOf(id)
    try {
      jobs.push(
        claimedJob(unpackClaimed(bufferOf(definitions?.[index])), {
          id: `${lane}/${local}`,
          lane,
          token,
          attempt: (run?.attempts ?? 0) + 1,
          crashes: run?.crashes ?? 0,
          terms: termsOf(terms?.[index]),
          nowMs,
        }),
      )
    } catch {
      damaged.push({ local, token })
    }
  })
  return { jobs, damaged }
}

function termsOf(reply: RedisReply | undefined): Terms | null {
  const text = optionalText(reply)
  return text === null ? null : parseTerms(text)
}

/** A job whose lease is known already: what an earlier claim was given. */
export function readHeld(
  parts: readonly [id: RedisReply, definition: RedisReply, run: RedisReply, terms: RedisReply],
  at: { readonly lane: string; readonly nowMs: number },
): ClaimedJob {
  const [id, definition, runText, terms] = parts
  const run: Run = parseRun(textOf(runText))
  return claimedJob(unpackClaimed(bufferOf(definition)), {
    id: `${at.lane}/${textOf(id)}`,
    lane: at.lane,
    token: run.token,
    attempt: run.attempts,
    crashes: run.crashes,
    terms: termsOf(terms),
    nowMs: at.nowMs,
  })
}
