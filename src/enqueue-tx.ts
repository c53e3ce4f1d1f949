/**
 * Enqueueing inside the caller's own transaction. All is checked before anything is written, and nothing is awaited that need
 * not be: the first statement is on its way when `enqueueTx` returns. In a synchronous transaction the job is then written
 * already, and what went wrong is thrown rather than rejected, since the transaction would commit before a rejection is heard.
 */
import type { BackendActor } from './actors/backend-actor.ts'
import type { EnqueueResult } from './backends/protocol/index.ts'
import { awaitSteps, runSteps, type TransactionalEnqueue } from './backends/transactional.ts'
import type { EnqueueOptions, JobContract } from './contract.ts'
import { checkInput, type DefinitionContext, toDefinition, toTarget } from './enqueue.ts'
import { type HoldfastError, isHoldfastError } from './errors.ts'
import {
  type AsynchronousTransaction,
  type CallerTransaction,
  refuse,
  type SynchronousTransaction,
} from './transactions/caller-transaction.ts'
import { recogniseTransaction } from './transactions/recognise.ts'

export interface EnqueueTxContext {
  readonly backend: BackendActor
  readonly definition: DefinitionContext
}

export interface EnqueueTxRequest {
  readonly job: JobContract | string
  readonly input: unknown
  readonly options: EnqueueOptions
}

/** Rejects; inside an open synchronous transaction it throws. */
export function enqueueTx(
  context: EnqueueTxContext,
  transaction: unknown,
  request: EnqueueTxRequest,
): Promise<EnqueueResult> {
  let caller: CallerTransaction
  try {
    caller = recogniseTransaction(transaction)
    // Where none is open, nothing can commit before a rejection is heard.
    caller.requireOpen()
  } catch (problem) {
    return rejectFirst(context, problem)
  }
  if (caller.isSynchronous) return Promise.resolve(enqueueNow(context, caller, request))
  return enqueueLater(context, caller, request)
}

/** That a store has no transactions matters more than that this is none. */
async function rejectFirst({ backend }: EnqueueTxContext, problem: unknown): Promise<never> {
  const store = backend.transactional()
  throw toHoldfastError(store, problem)
}

function enqueueNow(
  { backend, definition }: EnqueueTxContext,
  caller: SynchronousTransaction,
  { job, input, options }: EnqueueTxRequest,
): EnqueueResult {
  const store = storeOf(backend, caller)
  const target = toTarget(job)
  const checking = checkInput(target, input)
  if (checking !== undefined) {
    checking.catch(() => {}) // What it comes to no longer matters.
    throw refuse(`it is synchronous, and the schema of '${target.type}' is not: validate before the transaction`)
  }
  const defined = toDefinition(target, input, options, definition)
  try {
    return runSteps(store.enqueue(defined), caller.execute)
  } catch (error) {
    throw toHoldfastError(store, error)
  }
}

async function enqueueLater(
  { backend, definition }: EnqueueTxContext,
  caller: AsynchronousTransaction,
  { job, input, options }: EnqueueTxRequest,
): Promise<EnqueueResult> {
  const store = storeOf(backend, caller)
  const target = toTarget(job)
  const checking = checkInput(target, input)
  if (checking !== undefined) await checking
  const defined = toDefinition(target, input, options, definition)
  try {
    const probing = caller.probe()
    if (probing !== null) await probing
    return await awaitSteps(store.enqueue(defined), caller.execute)
  } catch (error) {
    throw toHoldfastError(store, error)
  }
}

const NAMES = { postgres: 'PostgreSQL', sqlite: 'SQLite' } as const

function storeOf(backend: BackendActor, { dialect }: CallerTransaction): TransactionalEnqueue {
  const store = backend.transactional()
  if (dialect === store.dialect) return store
  throw refuse(`it is one of ${NAMES[dialect]}, and the jobs are in ${NAMES[store.dialect]}`)
}

const toHoldfastError = (store: TransactionalEnqueue, error: unknown): HoldfastError =>
  isHoldfastError(error) ? error : store.toError(error)
