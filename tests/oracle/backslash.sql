CREATE TABLE parent (id int PRIMARY KEY, code varchar(10) NOT NULL UNIQUE, price numeric(10,2) DEFAULT 0.00, made timestamptz DEFAULT now(), CONSTRAINT price_check CHECK (price >= 0));
CREATE TABLE child (id bigint, parent_id int NOT NULL REFERENCES parent ON DELETE CASCADE, name char(5), flag bool DEFAULT true, data bytea, PRIMARY KEY (id, parent_id));
CREATE INDEX child_name ON child (name DESC, flag);
\d parent
\d child
\d+ child
\d child_name
\d child_pkey
\dt
\dt child
\dt nothing
\di
\d
\dn
\l
\dt pg_catalog.pg_am
\dT integer
\du
DROP TABLE child, parent;
\d
\dt
