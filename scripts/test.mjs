// The whole test run: build, lint, types, then every suite against what was built. Ends with `N passed, N failed`.
// Each step counts as one test, so that a build that breaks is a failure with a number and not a silence.
// Of a whole run, a few tests that failed are run again when nothing else runs: with their file, then alone. One that holds three times of
// three was kept from its time by the others. It counts as passed and is told, so that somebody mends it; a fault fails again.
// Arguments are handed on to vitest; with any, only vitest runs.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const bin = (name) => join(root, 'node_modules', '.bin', name)
const filters = process.argv.slice(2)
let passed = 0
let failed = 0
/** Said once more at the end: a long run hides them. */
const failures = []
const doubts = []
/** More than so many are no accident. */
const DOUBTED_MAX = 3

function step(name, command, args) {
  console.log(`> ${name}`)
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  if (error) console.error(error.message)
  const isOk = status === 0
  if (isOk) passed += 1
  else {
    failed += 1
    failures.push(name)
  }
  return isOk
}

// Servers that cannot be had are a failure with a number, never tests that were silently left out.
function findServices() {
  console.log('> services for the tests')
  const { status, stdout } = spawnSync(process.execPath, [join(root, 'scripts', 'find-services.mjs')], {
    cwd: root,
    stdio: ['inherit', 'pipe', 'inherit'],
    encoding: 'utf8',
  })
  const isOk = status === 0
  if (isOk) {
    passed += 1
    process.env.HOLDFAST_TEST_SERVICES = stdout
    for (const [name, { kind, program, image }] of Object.entries(JSON.parse(stdout)))
      console.log(`  ${name}: ${kind === 'local' ? program : `${program} in a container of ${image}`}`)
  } else {
    failed += 1
    failures.push('services for the tests')
  }
}

function vitest(args) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  const [file, unhandled] = [join(folder, 'report.json'), join(folder, 'unhandled.json')]
  const other = join(root, 'scripts', 'unhandled.mjs')
  const reports = ['--reporter=default', '--reporter=json', `--reporter=${other}`, `--outputFile.json=${file}`]
  const { status } = spawnSync(bin('vitest'), ['run', ...reports, ...args], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, HOLDFAST_TEST_UNHANDLED: unhandled },
  })
  try {
    const [report, errors] = [file, unhandled].map((path) => JSON.parse(readFileSync(path, 'utf8')))
    return { ...testsOf(report), errors, status }
  } catch (error) {
    console.error(`no report of the tests: ${error.message}`)
    return null
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Each test of a report once; `broken` are files that failed though no test of theirs did. */
function testsOf({ testResults }) {
  const tests = { passed: 0, fallen: [], missing: [], broken: [] }
  for (const { name, status, assertionResults } of testResults) {
    const file = relative(root, name)
    for (const { fullName: title, status } of assertionResults) {
      if (status === 'passed') tests.passed += 1
      else if (status === 'failed') tests.fallen.push({ file, title })
      else tests.missing.push(`${file}: ${title} (${status})`)
    }
    if (status === 'failed' && assertionResults.every((test) => test.status !== 'failed'))
      tests.broken.push(`${file}: failed outside its tests, or nothing of it ran`)
  }
  return tests
}

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

function holds(what, args) {
  console.log(`> again, by itself: ${what}`)
  const report = vitest(args)
  return report !== null && report.status === 0 && report.passed > 0
}

const filesThatHold = new Map()

/** Whether its whole file holds when nothing runs beside it, and then the test alone, twice. */
function holdsAlone({ file, title }) {
  if (!filesThatHold.has(file)) filesThatHold.set(file, holds(file, [file]))
  const alone = [file, '--testNamePattern', `^${escaped(title)}$`]
  return filesThatHold.get(file) && holds(title, alone) && holds(title, alone)
}

function suites() {
  const report = vitest(filters)
  if (report === null) {
    failed += 1
    return
  }
  passed += report.passed
  // A test that did not run has not passed: there are no skips here.
  const others = [
    ...report.missing,
    ...report.broken,
    ...report.errors.map((message) => `outside all tests: ${message}`),
  ]
  failures.push(...others)
  failed += others.length
  const areFew = filters.length === 0 && others.length === 0 && report.fallen.length <= DOUBTED_MAX
  for (const test of report.fallen) {
    if (areFew && holdsAlone(test)) {
      passed += 1
      doubts.push(`${test.file}: ${test.title} failed beside the others; by itself its file held, and it three times`)
    } else {
      failed += 1
      failures.push(`${test.file}: ${test.title} (failed)`)
    }
  }
  if (report.status !== 0 && failed === 0 && report.fallen.length === 0) failed += 1
  if (report.passed === 0) failed += 1
}

const isBuilt = step('build', process.execPath, [join(root, 'scripts', 'build.mjs')])
if (isBuilt) {
  if (filters.length === 0) {
    step('lint and format', bin('biome'), ['check', '.'])
    step('types of the tests', bin('tsc'), ['-p', 'tsconfig.test.json'])
  }
  findServices()
  suites()
  if (filters.length === 0)
    step('planted bugs are caught', process.execPath, [join(root, 'test', 'mutants', 'run.mjs'), '--after-suites'])
}

for (const doubt of doubts) console.log(`? ${doubt}`)
for (const failure of failures) console.log(`! ${failure}`)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
