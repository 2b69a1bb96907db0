-- java 1.0: jars in the database, class paths by schema, and the functions of ISO/IEC 9075-13 for them.

CREATE TABLE sqlj.jar_repository (
    jarid int PRIMARY KEY,
    jarname varchar(100) NOT NULL UNIQUE,
    jarorigin varchar(500),
    jarowner name NOT NULL DEFAULT current_user,
    jardigest bytea NOT NULL,
    jarimage bytea NOT NULL
);
CREATE TABLE sqlj.classpath_entry (
    schemaname varchar(64) NOT NULL,
    ordinal int NOT NULL,
    jarid int NOT NULL REFERENCES sqlj.jar_repository,
    PRIMARY KEY (schemaname, ordinal)
);
GRANT USAGE ON SCHEMA sqlj TO PUBLIC;
GRANT SELECT ON sqlj.jar_repository, sqlj.classpath_entry TO PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('sqlj.jar_repository', '');
SELECT pg_catalog.pg_extension_config_dump('sqlj.classpath_entry', '');

CREATE FUNCTION sqlj.java_version() RETURNS text LANGUAGE java STABLE
    AS 'java.lang.String=threadgres.Bridge.version()';
-- Has the JVM started: without one it says what is missing.
SELECT sqlj.java_version();
CREATE FUNCTION sqlj.read_url(url varchar) RETURNS bytea LANGUAGE java STRICT
    AS 'byte[]=threadgres.Bridge.read(java.lang.String)';
CREATE FUNCTION sqlj.jar_commands(image bytea, install boolean) RETURNS text[] LANGUAGE java IMMUTABLE STRICT
    AS 'threadgres.Bridge.commands(byte[], boolean)';

-- Sessions look anew for their functions' jars when definitions have changed: this is one.
CREATE FUNCTION sqlj.jars_changed() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE pg_catalog.format('COMMENT ON TABLE sqlj.jar_repository IS %L',
        'Jars of functions in Java; changed at ' || pg_catalog.clock_timestamp());
END $$;

CREATE FUNCTION sqlj.check_jar(name varchar, there boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF name IS NULL OR name !~ '^[[:alpha:]_][[:alnum:]_.-]*$' THEN
        RAISE EXCEPTION 'invalid jar name: "%"', name USING ERRCODE = '46002';
    END IF;
    LOCK TABLE sqlj.jar_repository IN SHARE ROW EXCLUSIVE MODE;
    IF there AND NOT EXISTS (SELECT FROM sqlj.jar_repository AS r WHERE r.jarname = name) THEN
        RAISE EXCEPTION 'jar "%" does not exist', name USING ERRCODE = '46002';
    ELSIF NOT there AND EXISTS (SELECT FROM sqlj.jar_repository AS r WHERE r.jarname = name) THEN
        RAISE EXCEPTION 'jar "%" already exists', name USING ERRCODE = '46002';
    END IF;
END $$;

CREATE FUNCTION sqlj.run_commands(image bytea, install boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    command text;
BEGIN
    FOREACH command IN ARRAY sqlj.jar_commands(image, install) LOOP
        EXECUTE command;
    END LOOP;
END $$;

CREATE FUNCTION sqlj.install_jar(image bytea, jarname varchar, deploy boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM sqlj.check_jar($2, false);
    INSERT INTO sqlj.jar_repository (jarid, jarname, jardigest, jarimage)
        SELECT coalesce(max(r.jarid), 0) + 1, $2, pg_catalog.sha256($1), $1 FROM sqlj.jar_repository AS r;
    PERFORM sqlj.jars_changed();
    IF deploy THEN
        PERFORM sqlj.run_commands($1, true);
    END IF;
END $$;

CREATE FUNCTION sqlj.install_jar(url varchar, jarname varchar, deploy boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM sqlj.install_jar(sqlj.read_url($1), $2, false);
    UPDATE sqlj.jar_repository AS r SET jarorigin = $1 WHERE r.jarname = $2;
    IF deploy THEN
        PERFORM sqlj.run_commands(r.jarimage, true) FROM sqlj.jar_repository AS r WHERE r.jarname = $2;
    END IF;
END $$;

CREATE FUNCTION sqlj.replace_jar(image bytea, jarname varchar, redeploy boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM sqlj.check_jar($2, true);
    IF redeploy THEN
        PERFORM sqlj.run_commands(r.jarimage, false) FROM sqlj.jar_repository AS r WHERE r.jarname = $2;
    END IF;
    UPDATE sqlj.jar_repository AS r SET jarimage = $1, jardigest = pg_catalog.sha256($1), jarorigin = NULL
        WHERE r.jarname = $2;
    PERFORM sqlj.jars_changed();
    IF redeploy THEN
        PERFORM sqlj.run_commands($1, true);
    END IF;
END $$;

CREATE FUNCTION sqlj.replace_jar(url varchar, jarname varchar, redeploy boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM sqlj.replace_jar(sqlj.read_url($1), $2, $3);
    UPDATE sqlj.jar_repository AS r SET jarorigin = $1 WHERE r.jarname = $2;
END $$;

CREATE FUNCTION sqlj.remove_jar(jarname varchar, undeploy boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM sqlj.check_jar($1, true);
    IF undeploy THEN
        PERFORM sqlj.run_commands(r.jarimage, false) FROM sqlj.jar_repository AS r WHERE r.jarname = $1;
    END IF;
    DELETE FROM sqlj.classpath_entry AS c USING sqlj.jar_repository AS r
        WHERE r.jarname = $1 AND c.jarid = r.jarid;
    DELETE FROM sqlj.jar_repository AS r WHERE r.jarname = $1;
    PERFORM sqlj.jars_changed();
END $$;

CREATE FUNCTION sqlj.set_classpath(schema varchar, path varchar) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    missing text;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1) THEN
        RAISE EXCEPTION 'schema "%" does not exist', $1 USING ERRCODE = '3F000';
    END IF;
    SELECT p.name INTO missing
        FROM pg_catalog.unnest(pg_catalog.string_to_array($2, ':')) AS p (name)
        WHERE NOT EXISTS (SELECT FROM sqlj.jar_repository AS r WHERE r.jarname = p.name) LIMIT 1;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'jar "%" does not exist', missing USING ERRCODE = '46102';
    END IF;
    DELETE FROM sqlj.classpath_entry AS c WHERE c.schemaname = $1;
    INSERT INTO sqlj.classpath_entry (schemaname, ordinal, jarid)
        SELECT $1, p.ordinal, r.jarid
        FROM pg_catalog.unnest(pg_catalog.string_to_array($2, ':')) WITH ORDINALITY AS p (name, ordinal)
        JOIN sqlj.jar_repository AS r ON r.jarname = p.name;
    PERFORM sqlj.jars_changed();
END $$;

CREATE FUNCTION sqlj.get_classpath(schema varchar) RETURNS varchar LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.string_agg(r.jarname, ':' ORDER BY c.ordinal)
    FROM sqlj.classpath_entry AS c JOIN sqlj.jar_repository AS r USING (jarid) WHERE c.schemaname = $1
$$;

REVOKE EXECUTE ON FUNCTION sqlj.read_url(varchar), sqlj.jar_commands(bytea, boolean), sqlj.jars_changed(),
    sqlj.check_jar(varchar, boolean), sqlj.run_commands(bytea, boolean),
    sqlj.install_jar(bytea, varchar, boolean), sqlj.install_jar(varchar, varchar, boolean),
    sqlj.replace_jar(bytea, varchar, boolean), sqlj.replace_jar(varchar, varchar, boolean),
    sqlj.remove_jar(varchar, boolean), sqlj.set_classpath(varchar, varchar) FROM PUBLIC;
