// PostGraphile makes its GraphQL schema of what the catalog says.
// Usage: node postgraphile.cjs DSN
const { createPostGraphileSchema } = require('postgraphile');
const { printSchema } = require('graphql');

createPostGraphileSchema(process.argv[2], ['public', 'Other'], { simpleCollections: 'both' })
  .then((schema) => { console.log(printSchema(schema)); process.exit(0); })
  .catch((error) => { console.log(error.message); process.exit(1); });
