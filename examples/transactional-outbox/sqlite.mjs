// The shop on SQLite with better-sqlite3, in the same file as the jobs. Its transactions are synchronous: enqueueTx has written the job
// when it returns, and throws what went wrong, so that db.transaction rolls back. The promise is awaited after the commit.
import Database from 'better-sqlite3'
import { confirmation, OutOfStock } from './shop.mjs'

export function openShop(url, hf) {
  const db = new Database(url.slice('sqlite:'.length))
  db.pragma('synchronous = FULL') // A commit survives a power cut; the driver's default may lose the last ones.
  db.exec(`
    CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, count INTEGER NOT NULL CHECK (count >= 0));
    CREATE TABLE IF NOT EXISTS orders (
      id INTEGER PRIMARY KEY, customer TEXT NOT NULL, item TEXT NOT NULL, count INTEGER NOT NULL
    );
    INSERT INTO stock VALUES ('book', 10) ON CONFLICT DO NOTHING`)
  const insert = db.prepare('INSERT INTO orders (customer, item, count) VALUES (?, ?, ?)')
  const take = db.prepare('UPDATE stock SET count = count - @count WHERE item = @item AND count >= @count')

  const write = db.transaction(({ customer, item, count }) => {
    const order = insert.run(customer, item, count).lastInsertRowid
    const enqueued = hf.enqueueTx(db, confirmation, { customer, order, item, count })
    if (take.run({ item, count }).changes === 0) throw new OutOfStock(`not enough of ${item}`)
    return { order, enqueued }
  })

  async function place(wanted) {
    // IMMEDIATE waits for its turn to write; a transaction that reads first could be refused when it comes to write.
    const { order, enqueued } = write.immediate(wanted)
    return { order, job: await enqueued }
  }

  const orders = () => db.prepare('SELECT id, customer, item, count FROM orders ORDER BY id').all()
  return { place, orders, close: () => db.close() }
}
