#!/usr/bin/env node
/** The program `holdfast`: the command line on the streams of this process. A closed pipe (`| head`) ends it quietly. */
import { dispatch } from './dispatch.ts'

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A reader that has seen enough closes the pipe: that is no failure of ours.
  process.exit(error.code === 'EPIPE' ? 0 : 1)
})

const code = await dispatch(process.argv.slice(2), process)
// What a user's module left open (a socket, a timer) must not keep the process; the output is flushed first.
process.stdout.write('', () => process.exit(code))
