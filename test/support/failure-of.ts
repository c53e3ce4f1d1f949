/** What a store says of a failed call, for tests that compare it. */

/** Code, message and details of what `work` rejects with. */
export async function failureOf(work: Promise<unknown>): Promise<Readonly<Record<string, unknown>>> {
  try {
    await work
  } catch (error) {
    const { code, message, details } = error as { code?: string; message: string; details?: object }
    return { ...details, code, message }
  }
  throw new Error('expected a rejection')
}
