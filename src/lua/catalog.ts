/** Every Lua script by name. A file of `script/` that is not listed here, or the other way round, fails a test. */
import { loadScript } from './loader.ts'
import type { LuaScript } from './script.ts'

export const SCRIPT_NAMES = [
  'job_add',
  'job_cancel',
  'job_claim',
  'job_enqueue',
  'job_list',
  'job_logs',
  'job_note',
  'job_promote',
  'job_read',
  'job_states',
  'job_turn',
  'keyspace_step',
  'lane_bury',
  'lane_drop',
  'lane_forget',
  'lane_maintain',
  'lane_policy',
  'lane_probe',
  'lane_register',
  'lane_stats',
  'lane_trim',
  'lane_usage',
  'lane_wait',
  'lease_find',
  'lease_reap',
  'lease_renew',
  'rights_check',
  'wake_push',
  'worker_beat',
  'worker_gone',
  'worker_list',
] as const

export type ScriptName = (typeof SCRIPT_NAMES)[number]
export type LuaCatalog = Readonly<Record<ScriptName, LuaScript>>

let loaded: LuaCatalog | null = null

/** Made once a process. */
export function loadCatalog(): LuaCatalog {
  loaded ??= Object.freeze(Object.fromEntries(SCRIPT_NAMES.map((name) => [name, loadScript(name)]))) as LuaCatalog
  return loaded
}
