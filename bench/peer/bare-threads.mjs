// The other side of `threads`.
import { runBare } from '../thread/bare.mjs'

export { name, settings, version } from '../thread/bare.mjs'

export const run = (options) => runBare(options, new URL('../thread/cpu.mjs', import.meta.url))
