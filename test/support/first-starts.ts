/** Processes that all open one store at once, each with a job of its own, and run whatever there is. C050. */
import { expect } from 'vitest'
import type { Child } from './child.ts'
import { lookFor } from './look.ts'
import type { Stage } from './stage.ts'

/** Returns when every job has run, and each once; the processes still do. */
export async function firstStarts(stage: Stage, url: string, count: number): Promise<readonly Child[]> {
  const children = Array.from({ length: count }, () => stage.child('starter.mjs', url))
  await Promise.all(
    children.map((child) => lookFor('a start', async () => child.lines.includes('opened') || undefined)),
  )
  for (const child of children) child.tell('go')
  const ran = (): string[] => children.flatMap(({ lines }) => lines.filter((line) => line.startsWith('ran')))
  await lookFor('all have run', async () => ran().length >= count || undefined)
  expect(new Set(ran()).size).toBe(count)
  expect(children.map(({ errors }) => errors).join('')).toBe('')
  return children
}
