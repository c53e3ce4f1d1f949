/** What a caller is told when a lane refuses jobs because of its `enqueueRate`. */
import type { EnqueueResult } from './backends/protocol/index.ts'
import { HoldfastError } from './errors.ts'

export type AcceptedResult = Exclude<EnqueueResult, { readonly outcome: 'refused' }>

/** The answer, unless it is a refusal: then that is thrown. */
export function accepted(result: EnqueueResult): AcceptedResult {
  requireAccepted([result])
  return result as AcceptedResult
}

/**
 * Throws ENQUEUE_RATE_EXCEEDED when one was refused. Entries of a batch count one by one in their order, so those before are stored:
 * `details.stored` has their ids, with null for each that was refused.
 */
export function requireAccepted(results: readonly EnqueueResult[]): void {
  const waits = results.flatMap((result) => (result.outcome === 'refused' ? [result] : []))
  const [first] = waits
  if (first === undefined) return
  const lane = first.id.slice(0, first.id.indexOf('/'))
  const retryAfterMs = Math.max(...waits.map((wait) => wait.retryAfterMs))
  const problem = `lane ${lane} accepts no more jobs for ${retryAfterMs} ms: ${waits.length} of ${results.length} were refused`
  throw new HoldfastError('ENQUEUE_RATE_EXCEEDED', problem, {
    details: {
      lane,
      retryAfterMs,
      refused: waits.length,
      stored: results.map((result) => (result.outcome === 'refused' ? null : result.id)),
    },
  })
}
