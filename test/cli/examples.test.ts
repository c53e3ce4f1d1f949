/** Each example ends by itself with exit code 0 and shows what it says it shows. They run against the build under test. */
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { MAIN, startNode, temporaryFolder } from '../support/cli.ts'
import { RedisServer } from '../support/redis-server.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const project = temporaryFolder()

/** A project of its own, in which `holdfast` is the package as it is installed. */
beforeAll(() => {
  cpSync(join(ROOT, 'examples'), join(project, 'examples'), { recursive: true })
  const modules = join(project, 'node_modules')
  mkdirSync(join(modules, 'holdfast'), { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(modules, 'holdfast/package.json'))
  symlinkSync(dirname(dirname(dirname(MAIN))), join(modules, 'holdfast/dist'))
  symlinkSync(join(ROOT, 'node_modules/better-sqlite3'), join(modules, 'better-sqlite3'))
})

describe('examples', () => {
  it.each<[string, RegExp[]]>([
    ['quickstart.mjs', [/failed once, then: hello Ada/, /completed at attempt 2 of/, /1 completed/]],
    ['threads.mjs', [/primes below 2,000,000: 148,933/, /PANIC/, /TIMEOUT/]],
    ['idempotent-effects.mjs', [/5 runs/, /1 payment/]],
  ])('%s', async (name, says) => {
    const { code, stdout, stderr } = await startNode([join('examples', name)], { cwd: project }).ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const text of says) expect(stdout).toMatch(text)
  })

  it('redis-workers.mjs', async () => {
    const server = await RedisServer.start({ appendOnly: true })
    try {
      const env = { REDIS_URL: server.url }
      const child = startNode([join('examples', 'redis-workers.mjs')], { cwd: project, env })
      const { code, stdout, stderr } = await child.ended
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      for (const text of [/durability 'everysec'/, /was killed/, /300 of 300 completed/]) expect(stdout).toMatch(text)
    } finally {
      await server.stop()
    }
  })
})
