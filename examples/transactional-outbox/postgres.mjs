// The shop on PostgreSQL with `pg`. Transactions of postgres, Kysely, Drizzle, Knex and Prisma are given to enqueueTx just so.
import pg from 'pg'
import { confirmation, OutOfStock } from './shop.mjs'

export async function openShop(connectionString, hf) {
  const pool = new pg.Pool({ connectionString })
  pool.on('error', (error) => console.error(`an idle connection was lost: ${error.message}`))
  await pool.query(`
    CREATE TABLE IF NOT EXISTS stock (item text PRIMARY KEY, count integer NOT NULL CHECK (count >= 0));
    CREATE TABLE IF NOT EXISTS orders (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer text NOT NULL, item text NOT NULL, count integer NOT NULL
    );
    INSERT INTO stock VALUES ('book', 10) ON CONFLICT DO NOTHING`)

  async function place({ customer, item, count }) {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      const { rows } = await client.query(
        'INSERT INTO orders (customer, item, count) VALUES ($1, $2, $3) RETURNING id::integer',
        [customer, item, count],
      )
      const order = rows[0].id
      // On this connection, in this transaction: nobody sees the job before the COMMIT, and a ROLLBACK takes it along.
      const job = await hf.enqueueTx(client, confirmation, { customer, order, item, count })
      const taken = await client.query('UPDATE stock SET count = count - $2 WHERE item = $1 AND count >= $2', [
        item,
        count,
      ])
      if (taken.rowCount === 0) throw new OutOfStock(`not enough of ${item}`)
      await client.query('COMMIT')
      return { order, job }
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {})
      throw error
    } finally {
      client.release()
    }
  }

  const orders = async () =>
    (await pool.query('SELECT id::integer, customer, item, count FROM orders ORDER BY id')).rows
  return { place, orders, close: () => pool.end() }
}
