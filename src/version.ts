/** What this process runs on: the version of this package, and of Node. */
import { createRequire } from 'node:module'

function readVersion(): string {
  try {
    const manifest = createRequire(import.meta.url)('../../package.json') as { readonly version?: unknown }
    return typeof manifest.version === 'string' ? manifest.version : 'unknown'
  } catch {
    // Bundled without its manifest: worth a word in a list of workers, and nothing else.
    return 'unknown'
  }
}

export const PACKAGE_VERSION = readVersion()
export const NODE_VERSION = process.versions.node
