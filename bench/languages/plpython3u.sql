SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS plpython3u;
CREATE OR REPLACE FUNCTION plpython3u_fib(n int) RETURNS int LANGUAGE plpython3u IMMUTABLE STRICT AS $$
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
return fib(n)
$$;
CREATE OR REPLACE FUNCTION plpython3u_same(n int) RETURNS int LANGUAGE plpython3u IMMUTABLE STRICT AS 'return n';
CREATE OR REPLACE FUNCTION plpython3u_mix(n int) RETURNS int LANGUAGE plpython3u IMMUTABLE STRICT
  AS 'return (n ^ (n >> 3)) & 1023';
CREATE OR REPLACE FUNCTION plpython3u_words(t text) RETURNS int LANGUAGE plpython3u IMMUTABLE STRICT
  AS 'return t.count(" ") + 1';
CREATE OR REPLACE FUNCTION plpython3u_ask(times int) RETURNS bigint LANGUAGE plpython3u AS $$
total = 0
for _ in range(times):
    total += plpy.execute('SELECT 1 AS one')[0]['one']
return total
$$;
