// Installs the peers of bench/package.json when they are missing or of another version; its messages go to standard error.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('.', import.meta.url))

function installedVersion(name) {
  try {
    return JSON.parse(readFileSync(`${folder}node_modules/${name}/package.json`, 'utf8')).version
  } catch {
    return null
  }
}

export function installPeers() {
  const { dependencies } = JSON.parse(readFileSync(`${folder}package.json`, 'utf8'))
  if (Object.entries(dependencies).every(([name, version]) => installedVersion(name) === version)) return
  console.error('bench: installing the peers of bench/package.json')
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: ['ignore', 2, 2] })
}

export { installedVersion as peerVersion }
