SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS plperl;
CREATE OR REPLACE FUNCTION plperl_fib(n int) RETURNS int LANGUAGE plperl IMMUTABLE STRICT AS $$
  my $fib; $fib = sub { my $n = shift; $n < 2 ? $n : $fib->($n - 1) + $fib->($n - 2) };
  return $fib->($_[0]);
$$;
CREATE OR REPLACE FUNCTION plperl_same(n int) RETURNS int LANGUAGE plperl IMMUTABLE STRICT AS 'return $_[0]';
CREATE OR REPLACE FUNCTION plperl_mix(n int) RETURNS int LANGUAGE plperl IMMUTABLE STRICT
  AS 'return ($_[0] ^ ($_[0] >> 3)) & 1023';
CREATE OR REPLACE FUNCTION plperl_words(t text) RETURNS int LANGUAGE plperl IMMUTABLE STRICT
  AS 'return ($_[0] =~ tr/ //) + 1';
CREATE OR REPLACE FUNCTION plperl_ask(times int) RETURNS bigint LANGUAGE plperl AS $$
  my $total = 0;
  for (1..$_[0]) { $total += spi_exec_query('SELECT 1 AS one')->{rows}[0]{one} }
  return $total;
$$;
