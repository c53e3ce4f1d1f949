// The whole test run: build, lint, types, then every suite against what was built. Ends with `N passed, N failed`.
// Each step counts as one test, so that a build that breaks is a failure with a number and not a silence.
// Of a whole run a few tests that failed are run again by themselves: one that holds three times of three was kept from its time by
// the others. It counts as passed and is told, so that somebody mends it; a fault fails again.
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
const DOUBTED_RUNS = 3

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
  const file = join(folder, 'report.json')
  const reports = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
  const { status } = spawnSync(bin('vitest'), ['run', ...reports, ...args], { cwd: root, stdio: 'inherit' })
  try {
    return { ...JSON.parse(readFileSync(file, 'utf8')), status }
  } catch (error) {
    console.error(`no report of the tests: ${error.message}`)
    return null
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** Whether a test that has just failed holds when nothing runs beside it. */
function holdsAlone({ file, title }) {
  for (let run = 1; run <= DOUBTED_RUNS; run++) {
    console.log(`> again, by itself, ${run} of ${DOUBTED_RUNS}: ${file}: ${title}`)
    const report = vitest([file, '--testNamePattern', `^${escaped(title)}$`])
    if (report === null || report.status !== 0 || report.numFailedTests > 0 || report.numPassedTests === 0) return false
  }
  return true
}

function suites() {
  const report = vitest(filters)
  if (report === null) {
    failed += 1
    return
  }
  const { numPassedTests, numPendingTests, numTodoTests, testResults, status } = report
  const broken = testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0)
  for (const { name } of broken) failures.push(`${relative(root, name)}: nothing of it ran`)
  const fallen = []
  for (const { name, assertionResults } of testResults)
    for (const { fullName, status } of assertionResults) {
      const test = { file: relative(root, name), title: fullName }
      if (status === 'failed') fallen.push(test)
      else if (status !== 'passed') failures.push(`${test.file}: ${fullName} (${status})`)
    }
  const areFew = filters.length === 0 && fallen.length <= DOUBTED_MAX
  for (const test of fallen) {
    const isHeld = areFew && holdsAlone(test)
    if (isHeld) {
      passed += 1
      doubts.push(`${test.file}: ${test.title} failed beside the others and held ${DOUBTED_RUNS} times by itself`)
    } else {
      failed += 1
      failures.push(`${test.file}: ${test.title} (failed)`)
    }
  }
  passed += numPassedTests
  // A test that did not run has not passed: there are no skips here.
  failed += numPendingTests + numTodoTests + broken.length
  if (status !== 0 && failed === 0 && fallen.length === 0) failed += 1
  if (numPassedTests === 0) failed += 1
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
