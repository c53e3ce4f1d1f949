// plainjob with `synchronous=FULL`, as our store has it, so that what it answers is on disk: its own setting is NORMAL, which loses
// acknowledged jobs in a power cut (see plainjob-defaults.mjs). A completed job stays in its table.
import { version as installed, plainjob } from './plainjob-queue.mjs'

export const name = 'plainjob'
export const version = installed
export const settings =
  'better-sqlite3 of the project, WAL, synchronous=FULL (its own: NORMAL), addMany for bulk, one loop a slot, logging off; completed jobs stay'

export const open = plainjob('FULL')
