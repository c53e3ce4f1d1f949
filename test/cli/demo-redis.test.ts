/** The demo on a private Redis server: alone, and shared by two processes of one namespace. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runCli, runJson, temporaryFolder } from '../support/cli.ts'
import { RedisServer } from '../support/redis-server.ts'

interface Demo {
  readonly run: number
  readonly files: number
  readonly completed: number
  readonly failed: number
  readonly lost: number
  readonly workers: number
  readonly lane: string
}

let server: RedisServer
beforeAll(async () => {
  server = await RedisServer.start({ appendOnly: true })
})
afterAll(() => server.stop())

function makeFolder(count: number, bytes: number): string {
  const folder = join(temporaryFolder(), 'files')
  mkdirSync(folder)
  for (let n = 0; n < count; n += 1) writeFileSync(join(folder, `${n}.txt`), `${n} `.repeat(bytes / 4))
  return folder
}

const demo = (folder: string): Promise<Demo> => runJson<Demo>(['demo', folder, '--url', server.url])

it('digests every file', async () => {
  expect(await demo(makeFolder(20, 2_000))).toMatchObject({ run: 1, files: 20, completed: 20, failed: 0, lost: 0 })
})

it('says so where the server keeps nothing', async () => {
  const forgetful = await RedisServer.start()
  try {
    const { code, stderr } = await runCli(['demo', makeFolder(1, 100), '--url', forgetful.url, '--json'])
    expect(code).toBe(0)
    expect(stderr).toMatch(/jobs do not outlive the server/)
  } finally {
    await forgetful.stop()
  }
})

it('two at once share one run, and both tell the whole of it', async () => {
  const folder = makeFolder(300, 150_000)
  const [one, other] = await Promise.all([demo(folder), demo(folder)])
  for (const result of [one, other])
    expect(result).toMatchObject({ run: 1, files: 300, completed: 300, failed: 0, lost: 0, workers: 2 })
  expect(one.lane).toBe(other.lane)
})
