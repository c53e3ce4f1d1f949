/** What may leave a thread, as the thread sees it before it sends. */
import { expect, it } from 'vitest'
import { cloneProblem } from '#dist/workers/clonable.js'

/** Two references a level: 2^50 leaves when written out. */
function manyfold(leaf: unknown): unknown {
  let value: unknown = [leaf]
  for (let level = 0; level < 50; level += 1) value = [value, value]
  return value
}

it('a value that refers to its parts many times over is looked through in bounded time', () => {
  expect(cloneProblem(manyfold(1), 'output')).toBeNull()
})

it('what cannot leave is found behind many objects', () => {
  const many = Array.from({ length: 20_000 }, () => ({}))
  expect(cloneProblem([many, many, { last: () => 1 }], 'output')).toBe(
    'output[2].last: a function cannot leave the thread',
  )
})
