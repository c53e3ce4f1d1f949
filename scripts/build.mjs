// Builds dist/: compiles src/ and workers/, copies the SQL and Lua files beside the code that reads them, and marks the CLI executable.
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = `${root}dist`
rmSync(dist, { recursive: true, force: true })
execFileSync(process.execPath, [`${root}node_modules/typescript/bin/tsc`, '-p', `${root}tsconfig.json`], {
  stdio: 'inherit',
})
for (const folder of ['src/backends/sqlite', 'src/backends/postgres', 'src/lua']) {
  if (!existsSync(`${root}${folder}`)) continue
  cpSync(`${root}${folder}`, `${dist}/${folder}`, { recursive: true, filter: (path) => !path.endsWith('.ts') })
}
if (existsSync(`${dist}/src/cli/main.js`)) chmodSync(`${dist}/src/cli/main.js`, 0o755)
