// plainjob as it is: `synchronous=NORMAL`, which loses acknowledged jobs in a power cut. A completed job stays in its table.
import { version as installed, plainjob } from './plainjob-queue.mjs'

export const name = 'plainjob-defaults'
export const version = installed
export const settings =
  'better-sqlite3 of the project, WAL, its synchronous=NORMAL, addMany for bulk, one loop a slot, logging off; completed jobs stay'

export const open = plainjob('NORMAL')
