-- What the clients look at: tables, keys, checks, defaults, views, comments and functions of a small library.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN isbn AS text CHECK (VALUE ~ '^[0-9-]+$');
CREATE TABLE author (
    id serial PRIMARY KEY, name varchar(40) NOT NULL DEFAULT 'x', born date, mood mood DEFAULT 'ok',
    CONSTRAINT named CHECK (name <> ''));
CREATE TABLE book (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, title text UNIQUE,
    author int REFERENCES author ON DELETE CASCADE, tags text[], price numeric(8, 2) DEFAULT 1.5, data jsonb,
    code isbn, added timestamptz NOT NULL DEFAULT now(), words int GENERATED ALWAYS AS (length(title)) STORED);
CREATE TABLE loan (
    book bigint REFERENCES book ON UPDATE RESTRICT, reader text, day date, days smallint CHECK (days > 0),
    PRIMARY KEY (book, reader, day));
CREATE TABLE measured (at timestamptz NOT NULL, value double precision) PARTITION BY RANGE (at);
CREATE TABLE measured_2024 PARTITION OF measured FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE INDEX book_author ON book (author, lower(title));
CREATE INDEX book_cheap ON book (price DESC NULLS LAST) INCLUDE (title) WHERE price < 5;
CREATE INDEX book_tags ON book USING gin (tags);
CREATE VIEW cheap AS SELECT id, title, price FROM book WHERE price < 5;
CREATE MATERIALIZED VIEW counted AS SELECT author, count(*) AS books FROM book GROUP BY author;
CREATE SEQUENCE tickets START 100 INCREMENT 10 MAXVALUE 1000 CYCLE;
CREATE SCHEMA "Other";
CREATE TABLE "Other"."Odd Name" ("Key" uuid PRIMARY KEY DEFAULT gen_random_uuid(), "a""b" int);
CREATE FUNCTION adult(a author) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT a.born < date ''2000-01-01''';
CREATE FUNCTION add(a int, b int DEFAULT 1) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN a + b; END';
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER noted BEFORE INSERT OR UPDATE OF title ON book FOR EACH ROW WHEN (NEW.price > 0) EXECUTE FUNCTION noted();
ALTER TABLE loan ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON loan USING (reader = current_user);
COMMENT ON TABLE book IS 'books';
COMMENT ON COLUMN book.title IS 'its title';
COMMENT ON CONSTRAINT named ON author IS 'has a name';
INSERT INTO author (name, born) VALUES ('Ada', '1815-12-10'), ('Grace', NULL);
INSERT INTO book (title, author, price) SELECT 'book ' || g, g % 2 + 1, g FROM generate_series(1, 50) g;
VACUUM ANALYZE;
