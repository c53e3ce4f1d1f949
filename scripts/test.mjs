// The whole test run: build, lint, types, then every suite against what was built. Ends with `N passed, N failed`.
// Each step counts as one test, so that a build that breaks is a failure with a number and not a silence.
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

function vitest() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  const report = join(folder, 'report.json')
  const args = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...filters]
  const { status } = spawnSync(bin('vitest'), args, { cwd: root, stdio: 'inherit' })
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(
      readFileSync(report, 'utf8'),
    )
    const brokenFiles = testResults.filter(
      (file) => file.status === 'failed' && file.assertionResults.length === 0,
    ).length
    passed += numPassedTests
    for (const { name, status, assertionResults } of testResults) {
      const file = relative(root, name)
      if (status === 'failed' && assertionResults.length === 0) failures.push(`${file}: nothing of it ran`)
      for (const test of assertionResults)
        if (test.status !== 'passed') failures.push(`${file}: ${test.fullName} (${test.status})`)
    }
    // A test that did not run has not passed: there are no skips here.
    failed += numFailedTests + numPendingTests + numTodoTests + brokenFiles
    if (status !== 0 && failed === 0) failed += 1
    if (numPassedTests === 0) failed += 1
  } catch (error) {
    console.error(`no report of the tests: ${error.message}`)
    failed += 1
  }
  rmSync(folder, { recursive: true, force: true })
}

const isBuilt = step('build', process.execPath, [join(root, 'scripts', 'build.mjs')])
if (isBuilt) {
  if (filters.length === 0) {
    step('lint and format', bin('biome'), ['check', '.'])
    step('types of the tests', bin('tsc'), ['-p', 'tsconfig.test.json'])
  }
  findServices()
  vitest()
  if (filters.length === 0)
    step('planted bugs are caught', process.execPath, [join(root, 'test', 'mutants', 'run.mjs'), '--after-suites'])
}

for (const failure of failures) console.log(`! ${failure}`)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
