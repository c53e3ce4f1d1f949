// Finds the servers and tools that the tests need, fails with one clear error where it cannot, and prints where they are as JSON.
import { fileURLToPath } from 'node:url'
import { runnerImport } from 'vite'

const path = fileURLToPath(new URL('../test/support/found-services.ts', import.meta.url))
try {
  const { module } = await runnerImport(path, { logLevel: 'error' })
  process.stdout.write(JSON.stringify(module.services))
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
