/** `holdfast work` until a signal: what runs may end, a second signal ends the process at once. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { runJson, startCli, temporaryFolder } from '../support/cli.ts'

const folder = temporaryFolder()

/** Says when it begins; `wait` ends when its signal fires or after the given time. */
const MODULE = `
import { setTimeout as pause } from 'node:timers/promises'
const contract = { type: 'wait', queue: 'default', retry: null, timeoutMs: null, maxCrashes: 3, keepResultMs: null, input: null, output: null }
const run = async (ms) => {
  process.stderr.write('handler began\\n')
  await pause(ms)
  return 'waited'
}
export default [{ kind: 'inline', contract, run }]
`

beforeAll(() => writeFileSync(join(folder, 'wait.mjs'), MODULE))

async function startWorkerOn(name: string, waitMs: number) {
  const env = { HOLDFAST_URL: `sqlite:${join(folder, name)}` }
  const { id } = await runJson<{ id: string }>(['enqueue', 'wait', String(waitMs)], { env })
  const run = startCli(['work', './wait.mjs', '--json', '--concurrency', '2'], { env, cwd: folder })
  await run.said('handler began')
  return { run, id, env }
}

describe('work', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('lets handlers end at %s and exits with 0', async (signal) => {
    const { run, id, env } = await startWorkerOn(`${signal}.db`, 400)
    run.child.kill(signal)
    const { code, stdout } = await run.ended
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ completed: 1, failed: 0, dead: 0 })
    expect(await runJson(['job', id], { env })).toMatchObject({ state: 'completed', output: 'waited' })
  })

  it('--until-empty gives back what has not ended by --stop-deadline', async () => {
    const env = { HOLDFAST_URL: `sqlite:${join(folder, 'until-empty.db')}` }
    const { id } = await runJson<{ id: string }>(['enqueue', 'wait', '600000'], { env })
    const args = ['work', './wait.mjs', '--json', '--until-empty', '--stop-deadline', '50ms']
    const run = startCli(args, { env, cwd: folder })
    await run.said('handler began')
    run.child.kill('SIGTERM')
    const { code, stdout } = await run.ended
    expect({ code, told: JSON.parse(stdout) }).toEqual({ code: 0, told: { taken: null, stopped: true } })
    expect(await runJson(['job', id], { env })).toMatchObject({ state: 'queued', attempts: 0 })
  })

  it.each(['20sec', '-1s', 'soon'])('refuses --stop-deadline %s before it takes a job', async (deadline) => {
    const env = { HOLDFAST_URL: `sqlite:${join(folder, 'refused.db')}` }
    const { code, stdout, stderr } = await startCli(['work', './wait.mjs', '--stop-deadline', deadline], {
      env,
      cwd: folder,
    }).ended
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^holdfast: --stop-deadline: expected .*\n$/)
  })

  it('exits at once with 1 at the second signal', async () => {
    const { run } = await startWorkerOn('twice.db', 60_000)
    run.child.kill('SIGINT')
    // The first must have been seen, or the two may arrive as one.
    const again = setInterval(() => run.child.kill('SIGINT'), 50)
    const { code, stdout } = await run.ended
    clearInterval(again)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  })
})
