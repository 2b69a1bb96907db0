CREATE OR REPLACE VIEW totals AS SELECT count(*) AS accounts, sum(balance) AS balance FROM account;
