CREATE TABLE account (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    balance numeric(12, 2) NOT NULL DEFAULT 0 CHECK (balance >= 0),
    changed timestamptz
);
CREATE TABLE account_log (account bigint NOT NULL REFERENCES account ON DELETE CASCADE, was numeric, now numeric);
