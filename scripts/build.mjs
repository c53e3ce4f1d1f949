// Builds dist/: compiles src/ and workers/, makes modules of the SQL and Lua files and of the version, and marks the CLI executable.
import { execFileSync } from 'node:child_process'
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { writeTexts } from './texts.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = `${root}dist`
rmSync(dist, { recursive: true, force: true })
execFileSync(process.execPath, [`${root}node_modules/typescript/bin/tsc`, '-p', `${root}tsconfig.json`], {
  stdio: 'inherit',
})
writeTexts(root, dist)
const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
writeFileSync(`${dist}/src/manifest.js`, `export const VERSION = ${JSON.stringify(version)}\n`)
chmodSync(`${dist}/src/cli/main.js`, 0o755)
