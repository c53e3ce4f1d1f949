// The whole test run on Node 24: copies what git tracks into .node24/, installs it there with Node 24 from npm's `node` package and
// better-sqlite3 13 (which brings binaries for Node 22 and later), and runs the same test command.
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const home = join(root, '.node24')
const project = join(home, 'project')
const runtime = join(home, 'runtime')
rmSync(home, { recursive: true, force: true })
mkdirSync(project, { recursive: true })
mkdirSync(runtime, { recursive: true })

for (const file of execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
  .split('\0')
  .filter(Boolean)) {
  mkdirSync(dirname(join(project, file)), { recursive: true })
  cpSync(join(root, file), join(project, file))
}

// Without the lock file's pin of version 12, npm takes the newest of the accepted range, 13; also for the packages of the tests that
// depend on 12, which would have to be compiled, and node@24 brings no headers.
const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
manifest.optionalDependencies['better-sqlite3'] = '^13'
manifest.overrides = { ...manifest.overrides, 'better-sqlite3': '^13' }
writeFileSync(join(project, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)

function run(command, args, options) {
  console.log(`> ${command} ${args.join(' ')}`)
  const { status } = spawnSync(command, args, { stdio: 'inherit', ...options })
  if (status !== 0) process.exit(status ?? 1)
}

writeFileSync(join(runtime, 'package.json'), '{"private":true}')
run('npm', ['install', '--no-audit', '--no-fund', 'node@24'], { cwd: runtime })
const bin = join(runtime, 'node_modules', 'node', 'bin')
const env = {
  ...process.env,
  PATH: `${bin}:${process.env.PATH}`,
  npm_config_nodedir: join(runtime, 'node_modules', 'node'),
}
run('node', ['--version'], { cwd: project, env })
run('git', ['init', '-q'], { cwd: project, env })
run('git', ['add', '-A'], { cwd: project, env })
run('npm', ['install', '--no-audit', '--no-fund'], { cwd: project, env })
run('node', ['scripts/test.mjs', ...process.argv.slice(2)], { cwd: project, env })
