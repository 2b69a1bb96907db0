// A small shop over node-postgres: it makes its tables, sells, asks, fails and recovers.
// Usage: node shop.js DSN
import assert from 'node:assert/strict';
import { once } from 'node:events';
import pg from 'pg';
import Cursor from 'pg-cursor';

const dsn = process.argv[2] ?? 'postgresql://postgres@127.0.0.1:5432/postgres';
const pool = new pg.Pool({ connectionString: dsn, max: 8 });

const tests = {
  async makesItsTables() {
    await pool.query(`DROP TABLE IF EXISTS sale, article;
      CREATE TABLE article (id int PRIMARY KEY, name text NOT NULL UNIQUE, price numeric(8, 2),
                            stock int NOT NULL CHECK (stock >= 0), data bytea, added timestamptz);
      CREATE TABLE sale (article int REFERENCES article (id), buyer text, n int, at timestamp)`);
    const { rows, fields } = await pool.query('SELECT * FROM article');
    assert.equal(rows.length, 0);
    assert.deepEqual(fields.map((f) => f.dataTypeID), [23, 25, 1700, 23, 17, 1184]);
  },

  async valuesComeBack() {
    const added = new Date('2024-02-29T12:30:15.123Z');
    const values = [1, 'Teekanne "ä" 😀', '12.50', 5, Buffer.from([0, 255, 92]), added];
    const { rowCount } = await pool.query('INSERT INTO article VALUES ($1, $2, $3, $4, $5, $6)', values);
    assert.equal(rowCount, 1);
    const { rows: [row] } = await pool.query('SELECT * FROM article WHERE id = $1', [1]);
    assert.deepEqual(Object.values(row), values);
    const { rows: [other] } = await pool.query(
      'SELECT $1::int[] AS a, $2::text[] AS b, $3::bool AS c, $4::float8 AS d, $5::text AS e',
      [[1, null, 3], ['x,y', '"'], true, 0.1, null]);
    assert.deepEqual(other, { a: [1, null, 3], b: ['x,y', '"'], c: true, d: 0.1, e: null });
    const array = await pool.query({ text: 'SELECT 1, 2', rowMode: 'array' });
    assert.deepEqual(array.rows, [[1, 2]]);
  },

  async preparedStatementsByName() {
    const client = await pool.connect();
    for (let i = 2; i < 60; i++) {
      await client.query({ name: 'add', text: 'INSERT INTO article (id, name, stock) VALUES ($1, $2, $3)', values: [i, `article ${i}`, i] });
    }
    const { rows } = await client.query({ name: 'one', text: 'SELECT name FROM article WHERE id = $1', values: [7] });
    assert.equal(rows[0].name, 'article 7');
    client.release();
  },

  async manyAtOnce() {
    const buy = async (n) => {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        await client.query('UPDATE article SET stock = stock - 1 WHERE id = $1', [50]);
        await client.query('INSERT INTO sale VALUES (50, $1, 1, now())', [`buyer ${n}`]);
        await client.query('COMMIT');
        return true;
      } catch (error) {
        assert.equal(error.code, '23514');
        assert.equal(error.constraint, 'article_stock_check');
        await client.query('ROLLBACK');
        return false;
      } finally {
        client.release();
      }
    };
    const bought = await Promise.all(Array.from({ length: 60 }, (_, n) => buy(n)));
    assert.equal(bought.filter(Boolean).length, 50);
    const { rows } = await pool.query('SELECT stock, (SELECT count(*) FROM sale) AS sold FROM article WHERE id = 50');
    assert.deepEqual(rows[0], { stock: 0, sold: '50' });
  },

  async errorsSayWhatIsWrong() {
    const cases = [
      ["INSERT INTO article VALUES (1, 'x', 1, 1)", '23505', { constraint: 'article_pkey', table: 'article', schema: 'public' }],
      ['INSERT INTO sale (article) VALUES (999)', '23503', { constraint: 'sale_article_fkey' }],
      ['INSERT INTO article (id, stock) VALUES (999, 1)', '23502', { column: 'name' }],
      ['SELECT nothing FROM article', '42703', { position: '8' }],
      ["SELECT 'x'::int", '22P02', {}],
    ];
    for (const [text, code, more] of cases) {
      const error = await pool.query(text).then(() => assert.fail(text), (e) => e);
      assert.equal(error.code, code, text);
      for (const [name, value] of Object.entries(more)) assert.equal(error[name], value, `${text}: ${name}`);
    }
  },

  async cursorsAndSeveralStatements() {
    const client = await pool.connect();
    const cursor = client.query(new Cursor('SELECT id FROM article WHERE id > $1 ORDER BY id', [1]));
    const first = await cursor.read(3);
    const second = await cursor.read(2);
    assert.deepEqual([...first, ...second].map((r) => r.id), [2, 3, 4, 5, 6]);
    await cursor.close();
    const both = await client.query('SELECT 1 AS a; SELECT 2 AS b');
    assert.deepEqual(both.map((r) => r.rows[0]), [{ a: 1 }, { b: 2 }]);
    client.release();
  },

  async othersAreNotified() {
    const client = await pool.connect();
    await client.query('LISTEN shop');
    const notified = once(client, 'notification');
    await pool.query("SELECT pg_notify('shop', 'open')");
    const [message] = await notified;
    assert.deepEqual([message.channel, message.payload], ['shop', 'open']);
    await client.query('UNLISTEN *');
    client.release();
  },

  async aLostConnectionIsReplaced() {
    const client = await pool.connect();
    client.on('error', () => {});
    const { rows: [{ pid }] } = await client.query('SELECT pg_backend_pid() AS pid');
    const ended = new Promise((resolve) => client.once('end', resolve));
    await pool.query('SELECT pg_terminate_backend($1)', [pid]);
    await ended;
    client.release(true);
    assert.equal((await pool.query('SELECT 1 AS x')).rows[0].x, 1);
  },
};

let failed = 0;
pool.on('error', () => {});
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
  } catch (error) {
    failed += 1;
    console.log(`${name}: ${error.stack}`);
  }
}
await pool.end();
console.log(`node-postgres: ${Object.keys(tests).length - failed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
