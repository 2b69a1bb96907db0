// TypeORM makes its tables, finds nothing to change the second time, and reads what others made.
// Usage: node typeorm.cjs DSN
require('reflect-metadata');
const { DataSource, EntitySchema } = require('typeorm');

const Plant = new EntitySchema({
  name: 'Plant',
  columns: {
    id: { type: Number, primary: true, generated: true },
    name: { type: 'varchar', length: 20, unique: true, comment: 'its name' },
    size: { type: 'enum', enum: ['small', 'tall'], default: 'small' },
    more: { type: 'jsonb', nullable: true },
    price: { type: 'numeric', precision: 8, scale: 2, default: 0 },
    loud: { type: 'text', generatedType: 'STORED', asExpression: 'upper(name)', nullable: true },
  },
  indices: [{ columns: ['size'] }],
  checks: [{ expression: '"name" <> \'\'' }],
});
const Leaf = new EntitySchema({
  name: 'Leaf',
  columns: {
    id: { type: 'uuid', primary: true, default: () => 'gen_random_uuid()' },
    grown: { type: 'timestamptz', createDate: true },
  },
  relations: { plant: { type: 'many-to-one', target: 'Plant', onDelete: 'CASCADE' } },
});

async function main() {
  const db = new DataSource({
    type: 'postgres', url: process.argv[2], entities: [Plant, Leaf], synchronize: false,
    installExtensions: false, logging: ['error'],
  });
  await db.initialize();
  await db.synchronize();
  const again = await db.driver.createSchemaBuilder().log();
  console.log(again.upQueries.map((q) => q.query));
  const plant = await db.getRepository('Plant').save({ name: 'fern' });
  await db.getRepository('Leaf').save({ plant });
  console.log(await db.getRepository('Leaf').count({ relations: { plant: true } }));
  const runner = db.createQueryRunner();
  const tables = await runner.getTables(['plant', 'leaf', 'author', 'book', 'loan', 'Other.Odd Name']);
  for (const table of tables.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    console.log(table.name, table.comment);
    for (const c of table.columns) {
      console.log(' ', c.name, c.type, c.length, c.precision, c.scale, c.isNullable, c.isPrimary, c.isUnique, c.isArray,
        c.isGenerated, c.generationStrategy, c.default, c.enum, c.comment, c.generatedType, c.asExpression);
    }
    const named = (list) => list.map((x) => `${x.name}(${x.columnNames ?? ''})${x.expression ?? ''}${x.onDelete ?? ''}`);
    console.log(' ', [...named(table.indices), ...named(table.foreignKeys), ...named(table.checks), ...named(table.uniques)].sort());
  }
  await runner.release();
  await db.destroy();
}
main().catch((error) => { console.log(error.message, error.query); process.exit(1); });
