/** One thing that the doctor has looked at, and what to do about it. */
export interface Check {
  readonly name: string
  readonly status: 'ok' | 'note' | 'wrong'
  readonly found: string
  /** null: nothing to do. */
  readonly advice: string | null
}

export const ok = (name: string, found: string): Check => ({ name, status: 'ok', found, advice: null })
/** Worth reading, harms nothing. */
export const note = (name: string, found: string, advice: string): Check => ({ name, status: 'note', found, advice })
/** The command ends with 1. */
export const wrong = (name: string, found: string, advice: string): Check => ({ name, status: 'wrong', found, advice })

/** Runs a check; one that throws is wrong. */
export type Attempt = (name: string, check: () => Promise<Check>) => Promise<Check>
