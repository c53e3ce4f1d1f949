/** Runs plans on a link: each step is one statement that commits by itself, unless the plan is run as one transaction. */
import { HoldfastError, isHoldfastError } from '../../errors.ts'
import type { AtomicStep, Plan, Row, Step, StepResult, Written } from '../sql/plan.ts'
import type { Answer, Link } from './link.ts'
import { type Statements, valuesFor } from './statement.ts'

export class Runner {
  private readonly link: Link
  private readonly statements: Statements
  private readonly ns: number

  constructor(link: Link, statements: Statements, ns: number) {
    this.link = link
    this.statements = statements
    this.ns = ns
  }

  /** `plan` makes the plan anew: a transaction that met a conflict is run again from the start. */
  run<T>(plan: () => Plan<T>, isAtomic = false): Promise<T> {
    if (!isAtomic) return this.followAlone(plan())
    return this.link.transaction((query) => this.follow(plan(), query))
  }

  private async follow<T>(
    plan: Plan<T>,
    query: Link['query'],
    atomic: (step: AtomicStep) => Promise<unknown> = (step) => this.follow(step.plan(), query),
  ): Promise<T> {
    let turn = plan.next()
    while (turn.done !== true) {
      const { value } = turn
      const result: StepResult =
        value.kind === 'atomic' ? { value: await atomic(value) } : await this.step(value, query)
      turn = plan.next(result)
    }
    return turn.value
  }

  /** Each step has its own commit: once one has written, what fails later leaves something done. */
  private async followAlone<T>(plan: Plan<T>): Promise<T> {
    let hasWritten = false
    const alone: Link['query'] = async (statement, ...rest) => {
      const answer = await this.link.query(statement, ...rest)
      hasWritten ||= statement.isWriting === true
      return answer
    }
    const atomic = async (step: AtomicStep): Promise<unknown> => {
      const value = await this.link.transaction((query) => this.follow(step.plan(), query), {
        isClaiming: step.isClaiming,
      })
      hasWritten = true
      return value
    }
    try {
      return await this.follow(plan, alone, atomic)
    } catch (error) {
      throw hasWritten && isHoldfastError(error) ? asPartly(error) : error
    }
  }

  private async step(step: Step, query: Link['query']): Promise<StepResult> {
    const statement = this.statements.get(step.name)
    const mode = step.kind === 'write' ? 'array' : statement.mode
    const answer = await query(statement, valuesFor(statement, this.ns, step), mode)
    if (step.kind === 'write') return writtenOf(step, answer)
    return step.kind === 'change' ? answer.count : (answer.rows as readonly Row[])
  }
}

function asPartly({ code, message, details, cause }: HoldfastError): HoldfastError {
  return new HoldfastError(code, message, { details: { ...details, outcome: 'unknown' }, cause })
}

function writtenOf({ name, rows }: Step, { rows: places }: Answer): Written {
  const written = rows.map(() => false)
  let now = 0
  for (const place of places as readonly (readonly [number, number])[]) {
    const [i, at] = place
    if (!(i >= 1 && i <= written.length))
      throw new HoldfastError('INTERNAL', `${name} wrote row ${i} of ${rows.length}`)
    written[i - 1] = true
    now = at
  }
  return { written, now }
}
