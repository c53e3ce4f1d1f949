// A reporter of vitest: what went wrong outside any test, which its JSON report leaves out, as a JSON list of messages.
import { writeFileSync } from 'node:fs'

export default class Unhandled {
  onTestRunEnd(_modules, errors) {
    writeFileSync(process.env.HOLDFAST_TEST_UNHANDLED, JSON.stringify(errors.map(({ message }) => String(message))))
  }
}
