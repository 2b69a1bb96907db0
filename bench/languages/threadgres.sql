SET client_min_messages = warning;
CREATE OR REPLACE FUNCTION javascript_fib(n int) RETURNS int LANGUAGE javascript IMMUTABLE STRICT AS $$
  const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
  return fib(n);
$$;
CREATE OR REPLACE FUNCTION javascript_same(n int) RETURNS int LANGUAGE javascript IMMUTABLE STRICT AS 'return n';
CREATE OR REPLACE FUNCTION javascript_mix(n int) RETURNS int LANGUAGE javascript IMMUTABLE STRICT
  AS 'return (n ^ (n >> 3)) & 1023';
CREATE OR REPLACE FUNCTION javascript_words(t text) RETURNS int LANGUAGE javascript IMMUTABLE STRICT
  AS 'return t.split(" ").length';
CREATE OR REPLACE FUNCTION javascript_ask(times int) RETURNS bigint LANGUAGE javascript AS $$
  let total = 0;
  for (let i = 0; i < times; i++) total += plv8.execute('SELECT 1 AS one')[0].one;
  return total;
$$;

\set module `cat bench/languages/work.wat`
CREATE OR REPLACE FUNCTION wasm_fib(n int) RETURNS int LANGUAGE wasm IMMUTABLE STRICT AS :'module', 'fib';
CREATE OR REPLACE FUNCTION wasm_same(n int) RETURNS int LANGUAGE wasm IMMUTABLE STRICT AS :'module', 'same';
CREATE OR REPLACE FUNCTION wasm_mix(n int) RETURNS int LANGUAGE wasm IMMUTABLE STRICT AS :'module', 'mix';
CREATE OR REPLACE FUNCTION wasm_words(t text) RETURNS int LANGUAGE wasm IMMUTABLE STRICT AS :'module', 'words';
CREATE OR REPLACE FUNCTION wasm_ask(times int) RETURNS bigint LANGUAGE wasm AS :'module', 'ask';
CREATE OR REPLACE FUNCTION wasm_batch_same(n int) RETURNS int LANGUAGE wasm IMMUTABLE STRICT
  AS :'module', 'same_batch BATCH';
CREATE OR REPLACE FUNCTION wasm_batch_mix(n int) RETURNS int LANGUAGE wasm IMMUTABLE STRICT
  AS :'module', 'mix_batch BATCH';
CREATE OR REPLACE FUNCTION wasm_batch_words(t text) RETURNS int LANGUAGE wasm IMMUTABLE STRICT
  AS :'module', 'words_batch BATCH';
