// Sequelize makes its tables, makes them anew where they differ, and says what it finds.
// Usage: node sequelize.cjs DSN
const { Sequelize, DataTypes } = require('sequelize');

async function main() {
  const db = new Sequelize(process.argv[2], { logging: false });
  const User = db.define('user', {
    name: { type: DataTypes.STRING, unique: true },
    kind: DataTypes.ENUM('x', 'y'),
    tags: DataTypes.ARRAY(DataTypes.TEXT),
    j: DataTypes.JSONB,
  }, { indexes: [{ fields: ['kind'] }] });
  const Post = db.define('post', { t: { type: DataTypes.TEXT, allowNull: false, defaultValue: 'none' } });
  Post.belongsTo(User, { onDelete: 'CASCADE' });
  await db.sync();
  await db.sync({ alter: true });
  const user = await User.create({ name: 'a', kind: 'x', tags: ['q', 'r'], j: { a: 1 } });
  await Post.create({ userId: user.id });
  console.log(await User.count({ where: { tags: { [Sequelize.Op.contains]: ['q'] }, j: { a: 1 } } }));
  const about = db.getQueryInterface();
  for (const table of ['users', 'posts', 'loan', 'author']) {
    console.log(table, JSON.stringify(await about.describeTable(table)));
    for (const index of await about.showIndex(table)) {
      console.log(index.name, index.primary, index.unique, JSON.stringify(index.fields));
    }
    for (const key of await about.getForeignKeyReferencesForTable(table)) {
      console.log(key.constraintName, key.columnName, key.referencedTableName, key.referencedColumnName);
    }
  }
  const constraints = await about.showConstraint('book');
  console.log(constraints.map((c) => `${c.constraintName.replace(/^\d+_\d+_/, "")} ${c.constraintType}`).sort().join('\n'));
  console.log((await about.showAllTables()).map((t) => t.tableName ?? t).sort().join(' '));
  console.log(await about.databaseVersion() >= '15');
  await db.close();
}
main().catch((error) => { console.log(error.message, error.sql ?? error.parent?.sql); process.exit(1); });
