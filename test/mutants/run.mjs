/**
 * Plants each bug of the catalogue in a copy of dist/ and demands that the suites named with it fail.
 * `node test/mutants/run.mjs [NAME …]` after a build; `--second` before the names asks the second suites of each instead.
 * First it checks that every text to be replaced occurs exactly once, and that all suites pass on an unchanged copy; with `--after-suites`,
 * for a caller who has just run them all, only that a copy is as good as the original.
 * Prints one line a mutant and ends with 1 when one survives.
 */
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readBuilt, writeBuilt } from '../../scripts/texts.mjs'
import { MUTANTS } from './catalog.mjs'

const AT_ONCE = 3
const AFTER_SUITES = '--after-suites'
/** Enough for each bug that only the simulation shows, and a quarter of what the quick suite runs; always the same runs. */
const SAME_EVERY_TIME = {
  HOLDFAST_SIM_SEEDS: '500',
  HOLDFAST_SIM_FROM: '1',
  HOLDFAST_SCENARIOS: '150',
  HOLDFAST_SEED: '1',
}
const root = fileURLToPath(new URL('../..', import.meta.url))
const work = join(root, '.mutants')
const dist = join(root, 'dist')

/** A mutant is one edit, or several that belong together. */
const editsOf = ({ edits, file, find, replace }) => edits ?? (file === undefined ? [] : [{ file, find, replace }])

function plant(mutant) {
  const { name } = mutant
  const folder = join(work, name, 'dist')
  mkdirSync(join(work, name), { recursive: true })
  cpSync(dist, folder, { recursive: true, filter: (path) => !/\.(map|d\.ts)$/.test(path) })
  for (const { file, find, replace } of editsOf(mutant)) {
    writeBuilt(
      folder,
      file,
      readBuilt(folder, file).replace(find, () => replace),
    )
  }
  return folder
}

/** The failed tests of a report with the first line of what each said. */
const failuresOf = ({ testResults }) =>
  testResults.flatMap(({ assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName, failureMessages }) => `${fullName}: ${(failureMessages[0] ?? '').split('\n')[0]}`),
  )

/** Runs suites against a copy, of their tests `only` some; resolves with the number of tests that ran and those that failed. */
function runSuites(name, folder, { suites, only }) {
  const report = join(work, name, 'report.json')
  const args = ['run', ...suites, '--bail=1', '--maxWorkers=1', '--reporter=json', `--outputFile=${report}`]
  if (only !== undefined) args.push('-t', only)
  return new Promise((resolve) => {
    const child = spawn(join(root, 'node_modules', '.bin', 'vitest'), args, {
      cwd: root,
      env: { ...process.env, HOLDFAST_DIST: folder, ...SAME_EVERY_TIME },
      stdio: 'ignore',
    })
    child.on('close', (status) => {
      try {
        const results = JSON.parse(readFileSync(report, 'utf8'))
        const { numPassedTests, numFailedTests } = results
        resolve({ status, passed: numPassedTests, failed: numFailedTests, failures: failuresOf(results) })
      } catch {
        resolve({ status, passed: 0, failed: 0, failures: [] })
      }
    })
  })
}

function checkCatalogue(mutants) {
  const problems = mutants.flatMap((mutant) => {
    const { name, suites } = mutant
    const wrong = editsOf(mutant).flatMap(({ file, find, replace }) => {
      const count = readBuilt(dist, file).split(find).length - 1
      return [
        ...(count === 1 ? [] : [`${name}: the text to replace occurs ${count} times in dist/${file}`]),
        ...(find === replace ? [`${name}: replaces a text by itself`] : []),
      ]
    })
    return suites.length > 0 ? wrong : [...wrong, `${name}: names no suite`]
  })
  const names = new Set(mutants.map(({ name }) => name))
  if (names.size !== mutants.length) problems.push('two mutants share a name')
  return problems
}

/**
 * Two unchanged copies: one for all files that the mutants are run with as a whole, one for those of which some tests are picked. The second
 * one alone shows that a copy works, and the first takes three minutes.
 */
function controlsOf(mutants) {
  const isPicked = ({ only }) => only !== undefined
  const whole = { name: 'unchanged', suites: filesOf(mutants.filter((mutant) => !isPicked(mutant))) }
  const picked = mutants.filter(isPicked)
  const patterns = [...new Set(picked.map(({ only }) => `(?:${only})`))]
  const part = { name: 'unchanged-part', suites: filesOf(picked), only: patterns.join('|') }
  const controls = process.argv.includes(AFTER_SUITES) ? [part] : [whole, part]
  return controls.filter(({ suites }) => suites.length > 0)
}

const filesOf = (mutants) => [...new Set(mutants.flatMap(({ suites }) => suites))]

async function someAtOnce(items, run) {
  const queue = [...items]
  const next = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await run(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
}

/** Resolves with what is wrong, if anything: a mutant that no test noticed, or tests that fail without one. */
async function judge(mutant) {
  const { name } = mutant
  const isControl = editsOf(mutant).length === 0
  const since = performance.now()
  const passes = ({ status, passed }) => status === 0 && passed > 0
  let result = await runSuites(name, plant(mutant), mutant)
  // The suites have passed before, by themselves. What failed here and passes the next time is told, and proves nothing about the bugs.
  if (isControl && !passes(result)) {
    for (const failure of result.failures) console.log(`again   ${name}: ${failure}`)
    result = await runSuites(name, plant(mutant), mutant)
  }
  const { status, passed, failed, failures } = result
  const isRight = isControl ? passes(result) : status !== 0 && failed > 0
  const seconds = ((performance.now() - since) / 1000).toFixed(1)
  const verdict = isControl ? (isRight ? 'passes' : 'FAILS') : isRight ? 'caught' : 'SURVIVED'
  console.log(`${verdict}  ${name}  (${seconds} s)`)
  rmSync(join(work, name), { recursive: true, force: true })
  return isRight ? null : [`${name}: exit ${status}, ${passed} passed, ${failed} failed`, ...failures].join('\n  ')
}

/** Those that are asked for; with `--second`, each with the suites that notice it independently of the first. */
function selected(names) {
  const asked = new Set(names.filter((name) => !name.startsWith('--')))
  const mutants = asked.size === 0 ? MUTANTS : MUTANTS.filter(({ name }) => asked.has(name))
  if (!names.includes('--second')) return mutants
  return mutants.flatMap(({ second, secondOnly, ...mutant }) =>
    second === undefined ? [] : { ...mutant, suites: second, only: secondOnly },
  )
}

async function main() {
  const mutants = selected(process.argv.slice(2))
  const problems = checkCatalogue(MUTANTS)
  if (mutants.length === 0) problems.push('no mutant has that name')
  if (problems.length > 0) return problems
  rmSync(work, { recursive: true, force: true })
  const startedAt = performance.now()
  const wrong = []
  await someAtOnce([...controlsOf(mutants), ...mutants], async (mutant) => {
    const problem = await judge(mutant)
    if (problem !== null) wrong.push(problem)
  })
  const caught = mutants.length - wrong.filter((line) => !line.startsWith('unchanged')).length
  console.log(`${caught}/${mutants.length} mutants caught in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  return wrong
}

const problems = await main()
for (const problem of problems) console.error(problem)
process.exitCode = problems.length === 0 ? 0 : 1
