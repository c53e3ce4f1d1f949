/** Whatever is typed wrong, or points at a wrong file, is one line on standard error and exit code 2; never a stack. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type CliRun, runCli, runInProcess, temporaryFolder } from '../support/cli.ts'

const folder = temporaryFolder()
const at = (name: string): string => join(folder, name)
const MEMORY = ['--url', 'memory:']

function expectOneLine({ code, stdout, stderr }: Omit<CliRun, 'signal'>, says: RegExp): void {
  expect({ code, stdout, lines: stderr.split('\n').length - 1 }).toEqual({ code: 2, stdout: '', lines: 1 })
  expect(stderr).toMatch(says)
  expect(stderr).not.toMatch(/^ +at /m)
}

async function expectRefusal(args: readonly string[], says: RegExp, env?: Record<string, string>): Promise<void> {
  expectOneLine(await runInProcess(args, env), says)
}

beforeAll(async () => {
  writeFileSync(at('not-a-database.db'), 'this is text, and long enough to be read as a header of a database file')
  for (const name of ['readonly.db', 'unreadable.db']) {
    const { code, stderr } = await runInProcess(['migrate', '--url', `sqlite:${at(name)}`])
    if (code !== 0) throw new Error(stderr)
  }
  chmodSync(at('readonly.db'), 0o444)
  chmodSync(at('unreadable.db'), 0o000)
  mkdirSync(at('folder'))
  const contract = `{ type: 'a', queue: 'default', retry: null, timeoutMs: null, maxCrashes: 3, keepResultMs: null, input: null, output: null }`
  const handler = `{ kind: 'inline', contract: ${contract}, run: () => 1 }`
  writeFileSync(at('no-default.mjs'), 'export const handlers = []')
  writeFileSync(at('empty.mjs'), 'export default []')
  writeFileSync(at('two.mjs'), `export default [${handler}, ${handler}]`)
  writeFileSync(at('broken.mjs'), 'export default [')
  writeFileSync(at('throws.mjs'), `throw new Error('on load\\nsecond line')`)
  writeFileSync(at('fine.mjs'), `export default [${handler}]`)
})

describe('bad usage', () => {
  it.each<[string[], RegExp]>([
    [[], /no command/],
    [['jbos'], /unknown command 'jbos'; did you mean 'jobs'\?/],
    [['frobnicate'], /unknown command 'frobnicate'; see holdfast help/],
    [['jobs', ...MEMORY, '--colour'], /Unknown option '--colour'; usage: holdfast jobs/],
    [['jobs', ...MEMORY, 'extra'], /unexpected argument 'extra'/],
    [['jobs'], /no store: give --url URL or set HOLDFAST_URL/],
    [['job', ...MEMORY], /something is missing; usage: holdfast job ID/],
    [['enqueue', ...MEMORY, 'a'], /something is missing/],
    [['jobs', '--url'], /argument missing/],
    [['bench'], /npm run bench/],
    [['help', 'nothing'], /unknown command 'nothing'/],
  ])('%j', (args, says) => expectRefusal(args, says))

  it('an empty HOLDFAST_LOG, as compose files make it, is none', async () => {
    const { code } = await runCli(['stats', ...MEMORY], { env: { HOLDFAST_LOG: '' } })
    expect(code).toBe(0)
  })
  it('HOLDFAST_LOG', () => expectRefusal(['stats', ...MEMORY], /HOLDFAST_LOG/, { HOLDFAST_LOG: 'loud' }))
})

describe('bad values', () => {
  it.each<[string[], RegExp]>([
    [['--delay', 'soon'], /^holdfast: --delay: expected text such as .*"soon"/],
    [['--timeout', '-5'], /^holdfast: --timeout: expected text such as .*"-5"/],
    [['--run-at', 'tomorrow'], /runAt: .*INVALID_INSTANT/],
    [['--deadline', '2030-01-01'], /deadline: .*INVALID_INSTANT/],
    [['--priority', 'high'], /--priority: expected a number/],
    [['--priority', '1.5'], /priority: expected a whole number/],
    [['--priority', '3000000000'], /priority: expected a whole number/],
    [['--max-attempts', '0'], /maxAttempts: expected a whole number/],
    [['--queue', 'a queue'], /queue: .*INVALID_NAME/],
    [['--key', ''], /idempotencyKey: /],
    [['--metadata', '[1]'], /--metadata: expected a JSON object/],
    [['--metadata', '{'], /--metadata: not valid JSON/],
    [['--namespace', 'a b'], /namespace: .*INVALID_NAME/],
    [['--delay', '1s', '--run-at', '0'], /either delay or runAt/],
  ])('enqueue %j', (flags, says) => expectRefusal(['enqueue', 'a', '{}', ...MEMORY, ...flags], says))

  it.each<[string[], RegExp]>([
    [['enqueue', 'a', '{not json'], /JSON: not valid JSON/],
    [['enqueue', 'a', '{"__proto__":1}'], /__proto__.*INVALID_PAYLOAD/],
    [['enqueue', '', '{}'], /type: .*INVALID_NAME/],
    [['jobs', '--state', 'lost'], /state: expected one of .*INVALID_STATE/],
    [['jobs', '--limit', '501'], /limit: expected a whole number from 1 to 500/],
    [['jobs', '--cursor', 'x'], /cursor: /],
    [['jobs', '--lane', 'ä'], /lane: .*INVALID_NAME/],
    [['job', 'nonsense'], /no job has the id "nonsense" \(JOB_NOT_FOUND\)/],
    [['explain', 'default/01JDY5ABCDEFGHJKMNPQRSTVWX'], /JOB_NOT_FOUND/],
    [['logs', 'default/01JDY5ABCDEFGHJKMNPQRSTVWX'], /JOB_NOT_FOUND/],
    [['cancel', 'x\u001b[31m'], /JOB_NOT_FOUND/],
    [['replay', 'x'], /JOB_NOT_FOUND/],
    [['retry', 'x'], /JOB_NOT_FOUND/],
    [['pause', 'a b'], /lane: .*INVALID_NAME/],
    [['demo', './missing'], /\.\/missing: no such folder/],
    [['demo', at('fine.mjs')], /expected a folder/],
  ])('%j', (args, says) => expectRefusal([...args, ...MEMORY], says))

  it('an input over the limit, to the whole program', async () => {
    const input = JSON.stringify('x'.repeat(1_048_577))
    const run = await runCli(['enqueue', 'a', '-', ...MEMORY], { input })
    expectOneLine(run, /input: \d+ bytes encoded; the limit is 1048576.*PAYLOAD_TOO_LARGE/)
  })
})

describe('bad stores', () => {
  it.each<[string, RegExp]>([
    ['mysql://root:s3cret@host/db', /unknown scheme 'mysql:'/],
    ['jobs.db', /url: no scheme/],
    ['sqlite:', /needs a path/],
    ['sqlite:x.db?mode=append', /mode must be one of/],
  ])('%s', (url, says) => expectRefusal(['jobs', '--url', url], says))

  it.each<[string, RegExp]>([
    ['not-a-database.db', /is not a SQLite database/],
    ['readonly.db', /STORE_READONLY/],
    ['unreadable.db', /STORE_READONLY/],
    ['folder', /is a folder/],
    ['missing/jobs.db', /folder .* is missing/],
  ])('sqlite:%s', (name, says) => expectRefusal(['stats', '--url', `sqlite:${at(name)}`], says))

  it('a password of the URL is in no output', async () => {
    const { stderr } = await runInProcess(['jobs'], { HOLDFAST_URL: 'mysql://root:s3cret@host/db' })
    expect(stderr).not.toContain('s3cret')
  })

  it('doctor says what to do about a file that is no database', async () => {
    const url = `sqlite:${at('not-a-database.db')}`
    const { code, stdout, stderr } = await runInProcess(['doctor', '--url', url])
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    expect(stdout).toMatch(/wrong +store opens +.*is not a SQLite database/)
    expect(stdout).toMatch(/→ mend the path/)
  })
})

describe('bad handler modules', () => {
  it.each<[string, RegExp]>([
    ['missing.mjs', /missing\.mjs: the module does not exist/],
    ['folder', /expected a file/],
    ['no-default.mjs', /expected `export default`/],
    ['empty.mjs', /handlers: expected at least one handler/],
    ['two.mjs', /two handlers for the job type 'a'.*DUPLICATE_HANDLER/],
    ['broken.mjs', /the module does not load/],
    ['throws.mjs', /the module does not load: on load second line/],
  ])('%s', (module, says) => expectRefusal(['work', at(module), ...MEMORY], says))

  it.each<[string[], RegExp]>([
    [['--concurrency', '0'], /concurrency: expected a whole number/],
    [['--lease', '1ms'], /lease: expected at least/],
    [['--lanes', 'a, b c'], /lanes\[1\]: /],
  ])('work %j', (flags, says) => expectRefusal(['work', at('fine.mjs'), ...MEMORY, ...flags], says))
})
