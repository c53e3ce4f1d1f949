// A table of the user's and a connection of the user's own, for transactions with one row each.
import { inputOf } from './shared.mjs'

async function onPostgres({ url, server, payloadBytes }) {
  const { default: pg } = await import('pg')
  await server.query('CREATE SCHEMA bench')
  await server.query('CREATE TABLE bench.row (seq bigserial PRIMARY KEY, id int NOT NULL UNIQUE, body json NOT NULL)')
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const insert = { name: 'insert-row', text: 'INSERT INTO bench.row (id, body) VALUES ($1, $2)' }
  return {
    client,
    begin: () => client.query('BEGIN'),
    insert: (index) => client.query({ ...insert, values: [index, JSON.stringify(inputOf(payloadBytes, index))] }),
    commit: () => client.query('COMMIT'),
    count: async () => (await client.query('SELECT count(*)::int AS count FROM bench.row')).rows[0].count,
    close: () => client.end(),
  }
}

/** In the file of the jobs: SQLite has no transaction over two files in WAL mode. */
async function onSqlite({ url, payloadBytes }) {
  const { default: Database } = await import('better-sqlite3')
  const client = new Database(url.slice('sqlite:'.length))
  client.pragma('journal_mode = WAL')
  client.pragma('synchronous = FULL')
  client.exec('CREATE TABLE user_row (seq INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE, body TEXT NOT NULL)')
  const insert = client.prepare('INSERT INTO user_row (id, body) VALUES (?, ?)')
  return {
    client,
    begin: () => client.exec('BEGIN IMMEDIATE'),
    insert: (index) => insert.run(index, JSON.stringify(inputOf(payloadBytes, index))),
    commit: () => client.exec('COMMIT'),
    count: () => client.prepare('SELECT count(*) FROM user_row').pluck().get(),
    close: () => client.close(),
  }
}

export const transactions = (options) => (options.server === undefined ? onSqlite(options) : onPostgres(options))
