/**
 * Plants each bug of the catalogue in a copy of dist/ and demands that the suites named with it fail.
 * `node test/mutants/run.mjs [NAME …]` after a build. First it checks that every text to be replaced occurs exactly once, and
 * that all suites pass on an unchanged copy. Prints one line a mutant and ends with 1 when one survives.
 */
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MUTANTS } from './catalog.mjs'

const AT_ONCE = 2
/** Enough for each bug that only the simulation shows, and a quarter of what the quick suite runs. */
const SEEDS = '500'
const SCENARIOS = '150'
const root = fileURLToPath(new URL('../..', import.meta.url))
const work = join(root, '.mutants')
const dist = join(root, 'dist')

function plant({ name, file, find, replace }) {
  const folder = join(work, name, 'dist')
  mkdirSync(join(work, name), { recursive: true })
  cpSync(dist, folder, { recursive: true, filter: (path) => !/\.(map|d\.ts)$/.test(path) })
  if (file === undefined) return folder
  const text = readFileSync(join(folder, file), 'utf8')
  writeFileSync(
    join(folder, file),
    text.replace(find, () => replace),
  )
  return folder
}

/** Runs suites against a copy; resolves with the number of tests that ran and that failed. */
function runSuites(name, folder, suites) {
  const report = join(work, name, 'report.json')
  const args = [...['run', ...suites, '--bail=1', '--maxWorkers=1', '--reporter=json', `--outputFile=${report}`]]
  return new Promise((resolve) => {
    const child = spawn(join(root, 'node_modules', '.bin', 'vitest'), args, {
      cwd: root,
      env: {
        ...process.env,
        HOLDFAST_DIST: folder,
        HOLDFAST_SIM_SEEDS: SEEDS,
        HOLDFAST_SIM_FROM: '1',
        HOLDFAST_SCENARIOS: SCENARIOS,
      },
      stdio: 'ignore',
    })
    child.on('close', (status) => {
      try {
        const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, 'utf8'))
        resolve({ status, passed: numPassedTests, failed: numFailedTests })
      } catch {
        resolve({ status, passed: 0, failed: 0 })
      }
    })
  })
}

function checkCatalogue(mutants) {
  const problems = mutants.flatMap(({ name, file, find, replace, suites }) => {
    const count = readFileSync(join(dist, file), 'utf8').split(find).length - 1
    return [
      ...(count === 1 ? [] : [`${name}: the text to replace occurs ${count} times in dist/${file}`]),
      ...(find === replace ? [`${name}: replaces a text by itself`] : []),
      ...(suites.length > 0 ? [] : [`${name}: names no suite`]),
    ]
  })
  const names = new Set(mutants.map(({ name }) => name))
  if (names.size !== mutants.length) problems.push('two mutants share a name')
  return problems
}

async function inPairs(items, run) {
  const queue = [...items]
  const next = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await run(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
}

async function main() {
  const asked = new Set(process.argv.slice(2))
  const mutants = asked.size === 0 ? MUTANTS : MUTANTS.filter(({ name }) => asked.has(name))
  const problems = checkCatalogue(MUTANTS)
  if (mutants.length === 0) problems.push('no mutant has that name')
  if (problems.length > 0) return problems
  rmSync(work, { recursive: true, force: true })
  const startedAt = performance.now()
  const survivors = []
  const suites = [...new Set(mutants.flatMap((mutant) => mutant.suites))]
  await inPairs([{ name: 'unchanged', suites }, ...mutants], async (mutant) => {
    const since = performance.now()
    const { status, passed, failed } = await runSuites(mutant.name, plant(mutant), mutant.suites)
    const isRight = mutant.file === undefined ? status === 0 && passed > 0 : status !== 0 && failed > 0
    const seconds = ((performance.now() - since) / 1000).toFixed(1)
    const verdict = mutant.file === undefined ? (isRight ? 'passes' : 'FAILS') : isRight ? 'caught' : 'SURVIVED'
    console.log(`${verdict}  ${mutant.name}  (${seconds} s)`)
    if (!isRight) survivors.push(`${mutant.name}: exit ${status}, ${passed} passed, ${failed} failed`)
    rmSync(join(work, mutant.name), { recursive: true, force: true })
  })
  const caught = mutants.length - survivors.filter((line) => !line.startsWith('unchanged:')).length
  console.log(`${caught}/${mutants.length} mutants caught in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  return survivors
}

const problems = await main()
for (const problem of problems) console.error(problem)
process.exitCode = problems.length === 0 ? 0 : 1
