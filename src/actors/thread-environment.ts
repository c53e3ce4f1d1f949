/**
 * The environment that handler threads see: a copy without the address of any store, so that a handler cannot reach
 * around its lease by accident. Pure; called by `pool-actor.ts`.
 */

const STORE_NAMES =
  /^(HOLDFAST_.*|(DATABASE|POSTGRES|POSTGRESQL|PG|REDIS|VALKEY)_?(URL|URI|DSN)|PGPASSWORD|REDISCLI_AUTH)$/i
const STORE_ADDRESS = /^(postgres|postgresql|redis|rediss|redis\+cluster|redis\+sentinel|sqlite):/i

/** Drops variables that are named like a store's address or hold one, whatever their name. */
export function handlerEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(environment).filter(
    ([name, value]) => !STORE_NAMES.test(name) && !STORE_ADDRESS.test(value ?? ''),
  )
  return Object.fromEntries(kept)
}
