/** What a Lua script is to those who run it: its text with includes put in, its digest, and what its header declares. */
export interface LuaScript {
  /** `job_turn` for `script/job_turn.lua`. */
  readonly name: string
  readonly source: string
  /** As EVALSHA wants it. */
  readonly sha1: string
  /** Roles of the keys, in order, such as `meta`, `defs`. */
  readonly keys: readonly string[]
  /** One more that may be given, behind the others. */
  readonly optionalKey: string | null
  readonly args: readonly string[]
  /** False for scripts that only read. */
  readonly isWriting: boolean
}
