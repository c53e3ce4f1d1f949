/** What this process runs on: the version of this package, and of Node. */
import { VERSION as OF_MANIFEST } from './manifest.js'

/** The version of Holdfast. Said anew, since the declarations of the package do not hold those of the manifest. */
export const VERSION: string = OF_MANIFEST
export const NODE_VERSION = process.versions.node
