// drizzle-kit writes what it finds into ./drizzle.
module.exports = {
  dialect: 'postgresql', out: './drizzle', dbCredentials: { url: process.env.DSN }, schemaFilter: ['public', 'Other'],
};
