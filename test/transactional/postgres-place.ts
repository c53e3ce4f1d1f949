/** A database with the tables of the store and a table `orders`, on a server that a file of tests shares. */
import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { PostgresBackend } from '#dist/src/backends/postgres/backend.js'
import { parsePostgresUrl } from '#dist/src/backends/postgres/url.js'
import { connectWith, type Holdfast } from '#dist/src/client.js'
import { systemClock, systemTimers } from '#dist/src/clock.js'
import { systemRandom } from '#dist/src/random.js'
import type { PostgresServer } from '../support/postgres-server.ts'
import { silent } from '../support/silent.ts'
import type { Place } from './library.suite.ts'

export interface PostgresPlace extends Place {
  /** Runs SQL outside of every transaction under test. */
  readonly client: Client
}

const REFUSING = `
  CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'no space is left' USING ERRCODE = '53100'; END $$;
  CREATE TRIGGER refusing BEFORE INSERT ON holdfast.job FOR EACH ROW WHEN (NEW.type = 'refused')
    EXECUTE FUNCTION refuse()`

/** Makes the database; the places in it are told apart by their namespaces. */
export async function openDatabase(
  server: PostgresServer,
): Promise<{ place(): Promise<PostgresPlace>; close(): Promise<void> }> {
  const database = `t_${randomBytes(6).toString('hex')}`
  await server.query(`CREATE DATABASE ${database}`)
  const location = server.urlOf({ database })
  const client = new Client({ connectionString: location })
  await client.connect()
  await (await connectPostgres(location, 'first')).close()
  await client.query(`CREATE TABLE orders (id integer PRIMARY KEY); ${REFUSING}`)
  let places = 0
  return {
    place: async () => {
      places += 1
      const namespace = `n${places}`
      await client.query('TRUNCATE orders')
      return {
        client,
        refusal: { code: 'STORE_FULL', retryable: true, details: { sqlState: '53100', outcome: 'notDone' } },
        location,
        connect: () => connectPostgres(location, namespace),
        orders: async () => {
          const { rows } = await client.query<{ id: number }>('SELECT id FROM orders ORDER BY id')
          return rows.map(({ id }) => id)
        },
        remove: async () => {},
      }
    },
    close: () => client.end(),
  }
}

export async function connectPostgres(url: string, namespace: string): Promise<Holdfast> {
  const platform = { clock: systemClock, timers: systemTimers, random: systemRandom }
  const backend = await PostgresBackend.open({
    ...platform,
    location: parsePostgresUrl(url),
    namespace,
    warn: () => {},
    openDeadlineMs: 10_000,
  })
  return connectWith({ ...platform, backend, options: { logger: silent } })
}
