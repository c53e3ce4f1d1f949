// The other side of `threads-noop`.
import { runBare } from '../thread/bare.mjs'

export { name, settings, version } from '../thread/bare.mjs'

export const run = (options) => runBare(options, new URL('../thread/noop.mjs', import.meta.url))
