/** The memory store passes every suite that its capabilities ask for. */
import { MEMORY_CAPABILITIES, MemoryBackend } from '#dist/src/backends/memory/backend.js'
import { describeBackend } from './harness.ts'

let stores = 0

describeBackend({
  name: 'memory',
  capabilities: MEMORY_CAPABILITIES,
  open: async () => {
    let name = `conformance-${++stores}`
    return {
      url: null,
      damageState: null,
      backend: async (options) => new MemoryBackend(name, options),
      reopen: async () => {
        name = `conformance-${++stores}`
      },
      remove: async () => {},
    }
  },
})
