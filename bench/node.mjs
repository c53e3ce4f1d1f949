// Some peers need a newer Node than the one that runs: then the whole run, our side too, is started again on Node 24, which npm's
// package `node` in bench/package.json brings.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { installPeers } from './setup.mjs'

const NEWER = fileURLToPath(new URL('./node_modules/node/bin/node', import.meta.url))
const NEEDED_MAJOR = 22
const NEEDED_BY = ['graphile-worker', 'graphile-worker-defaults', 'pg-boss']

export function needsNewerNode(peer) {
  return NEEDED_BY.includes(peer) && Number(process.versions.node.split('.')[0]) < NEEDED_MAJOR
}

/** Runs this command line again on Node 24 and ends this process as that one ends. */
export async function runOnNewerNode() {
  installPeers()
  const child = spawn(NEWER, [...process.execArgv, ...process.argv.slice(1)], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
  const [code] = await once(child, 'exit')
  process.exit(code ?? 1)
}
