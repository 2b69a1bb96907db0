-- pg_pathman's functions and views by their names, over declarative partitions.
--
-- A table becomes a partitioned one of the same name; what has its oid (views, functions' bodies by oid) has to be made
-- anew. With partition_data => false its rows stay in one partition until partition_table_concurrently moves them.

CREATE TABLE pathman_settings (
  partrel regclass PRIMARY KEY,
  range_interval text,
  auto boolean NOT NULL DEFAULT true,
  enable_parent boolean NOT NULL DEFAULT false,
  spawn_using_bgw boolean NOT NULL DEFAULT false,
  init_callback text,
  hash_count int
);
GRANT SELECT, INSERT, UPDATE, DELETE ON pathman_settings TO PUBLIC;
ALTER TABLE pathman_settings ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON pathman_settings FOR SELECT USING (true);
CREATE POLICY change ON pathman_settings FOR ALL
  USING (EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = partrel AND pg_catalog.pg_has_role(c.relowner, 'USAGE')))
  WITH CHECK (EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = partrel AND pg_catalog.pg_has_role(c.relowner, 'USAGE')));

-- A value as a literal of a bound.
CREATE FUNCTION pathman_literal(value anyelement) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN value IS NULL THEN NULL ELSE quote_literal(value::text) END
$$;

CREATE FUNCTION pathman_key(parent regclass) RETURNS text LANGUAGE sql STABLE STRICT AS $$
  SELECT regexp_replace(pg_get_partkeydef(parent), '^\w+ \((.*)\)$', '\1')
$$;

CREATE FUNCTION pathman_expect(parent regclass, strategy "char") RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = parent AND partstrat = strategy) THEN
    RAISE EXCEPTION 'table "%" is not partitioned by %', parent, CASE strategy WHEN 'r' THEN 'RANGE' ELSE 'HASH' END
      USING ERRCODE = 'wrong_object_type';
  END IF;
END $$;

CREATE FUNCTION get_parent_of_partition(partition_relid regclass) RETURNS regclass LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE
  found regclass;
BEGIN
  SELECT inhparent INTO found FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
    WHERE inhrelid = partition_relid AND c.relispartition;
  IF found IS NULL THEN
    RAISE EXCEPTION '"%" is not a partition', partition_relid USING ERRCODE = 'wrong_object_type';
  END IF;
  RETURN found;
END $$;

CREATE FUNCTION get_number_of_partitions(parent_relid regclass) RETURNS int LANGUAGE sql STABLE STRICT AS $$
  SELECT count(*)::int FROM pg_inherits WHERE inhparent = parent_relid
$$;

-- Lower and upper bound of a partition by range as text; NULL: none.
CREATE FUNCTION pathman_bounds(partition_relid regclass, OUT low text, OUT high text) LANGUAGE plpgsql STABLE AS $$
DECLARE
  shown text;
  parts text[];
BEGIN
  SELECT pg_get_expr(relpartbound, oid) INTO shown FROM pg_class WHERE oid = partition_relid;
  parts := regexp_match(shown, '^FOR VALUES FROM \((.*)\) TO \((.*)\)$');
  IF parts IS NULL THEN
    RETURN;
  END IF;
  low := NULLIF(regexp_replace(parts[1], '^''(.*)''$', '\1'), 'MINVALUE');
  high := NULLIF(regexp_replace(parts[2], '^''(.*)''$', '\1'), 'MAXVALUE');
END $$;

CREATE FUNCTION pathman_key_type(parent regclass) RETURNS regtype LANGUAGE plpgsql STABLE AS $$
DECLARE
  found regtype;
BEGIN
  SELECT a.atttypid INTO found FROM pg_partitioned_table p
    JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0] WHERE p.partrelid = parent;
  IF found IS NULL THEN
    EXECUTE format('SELECT pg_typeof(%s) FROM (SELECT (NULL::%s).*) x', pathman_key(parent), parent) INTO found;
  END IF;
  RETURN found;
END $$;

CREATE FUNCTION pathman_call(parent regclass, part regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  callback text;
  low text;
  high text;
  args jsonb;
BEGIN
  SELECT init_callback INTO callback FROM pathman_settings WHERE partrel = parent;
  IF callback IS NULL THEN
    RETURN;
  END IF;
  SELECT b.low, b.high INTO low, high FROM pathman_bounds(part) b;
  SELECT jsonb_build_object('parent', p.relname, 'parent_schema', pn.nspname, 'partition', c.relname,
      'partition_schema', cn.nspname, 'parttype', CASE WHEN low IS NULL AND high IS NULL THEN '1' ELSE '2' END,
      'range_min', low, 'range_max', high) INTO args
    FROM pg_class p JOIN pg_namespace pn ON pn.oid = p.relnamespace, pg_class c JOIN pg_namespace cn ON cn.oid = c.relnamespace
    WHERE p.oid = parent AND c.oid = part;
  EXECUTE format('SELECT %s($1)', callback::regproc) USING args;
END $$;

-- Sequences that belong to columns go with them.
CREATE FUNCTION pathman_hand_over(old regclass, new regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  owned record;
BEGIN
  FOR owned IN SELECT s.oid::regclass AS sequence, a.attname FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
      JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
      WHERE d.refobjid = old AND d.deptype = 'a' LOOP
    EXECUTE format('ALTER SEQUENCE %s OWNED BY %s.%I', owned.sequence, new, owned.attname);
  END LOOP;
END $$;

-- Puts a partitioned table in the place of a plain one. The old table is returned, under another name.
CREATE FUNCTION pathman_replace(relation regclass, spec text, options text) RETURNS regclass LANGUAGE plpgsql AS $$
DECLARE
  own text;
  space text;
  rest text;
  kind "char";
  role regrole;
  index record;
BEGIN
  SELECT c.relname, n.nspname, c.relkind, c.relowner::regrole INTO own, space, kind, role
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation;
  IF kind = 'p' THEN
    RAISE EXCEPTION 'table "%" has already been partitioned', own USING ERRCODE = 'wrong_object_type';
  ELSIF kind <> 'r' THEN
    RAISE EXCEPTION '"%" is not a table', own USING ERRCODE = 'wrong_object_type';
  END IF;
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', relation);
  rest := left(own, 58) || '_rest';
  EXECUTE format('ALTER TABLE %s RENAME TO %I', relation, rest);
  EXECUTE format('CREATE TABLE %I.%I (LIKE %I.%I INCLUDING ALL EXCLUDING INDEXES EXCLUDING IDENTITY) PARTITION BY %s%s',
    space, own, space, rest, spec, options);
  EXECUTE format('ALTER TABLE %I.%I OWNER TO %s', space, own, role);
  PERFORM pathman_hand_over(relation, format('%I.%I', space, own)::regclass);
  -- Indexes of the whole; a key that lacks the partition key holds for each partition alone, as pg_pathman's do.
  FOR index IN SELECT i.indexrelid::regclass AS id, i.indisprimary, con.conname, pg_get_constraintdef(con.oid) AS def,
      pg_get_indexdef(i.indexrelid) AS sql FROM pg_index i LEFT JOIN pg_constraint con ON con.conindid = i.indexrelid AND con.conrelid = i.indrelid
      WHERE i.indrelid = relation LOOP
    BEGIN
      IF index.def IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %I.%I ADD %s', space, own, index.def);
      ELSE
        EXECUTE regexp_replace(index.sql, '^CREATE (UNIQUE )?INDEX \S+ ON \S+( ONLY)? USING',
          format('CREATE \1INDEX ON %I.%I USING', space, own));
      END IF;
    EXCEPTION WHEN feature_not_supported OR invalid_table_definition THEN
      RAISE NOTICE 'index "%" can''t hold for all partitions and is left out', index.id;
    END;
  END LOOP;
  RETURN format('%I.%I', space, rest)::regclass;
END $$;

CREATE FUNCTION pathman_note(parent regclass, step text, number int) RETURNS void LANGUAGE sql AS $$
  DELETE FROM pathman_settings s WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = s.partrel) OR s.partrel = parent;
  INSERT INTO pathman_settings (partrel, range_interval, hash_count) VALUES (parent, step, number)
$$;

-- The rows of the old table go into partitions, or the old table becomes the partition that has all rows yet.
CREATE FUNCTION pathman_take(parent regclass, rest regclass, partition_data boolean, bound text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  columns text;
BEGIN
  IF partition_data THEN
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO columns FROM pg_attribute
      WHERE attrelid = rest AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
    EXECUTE format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM ONLY %s', parent, columns, columns, rest);
    EXECUTE format('DROP TABLE %s', rest);
  ELSE
    EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s %s', parent, rest, bound);
  END IF;
END $$;

CREATE FUNCTION create_hash_partitions(
  parent_relid regclass, expression text, partitions_count int, partition_data boolean DEFAULT true,
  partition_names text[] DEFAULT NULL, tablespaces text[] DEFAULT NULL
) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  own text := parent_relid::text;
  rest regclass;
  parent regclass;
  name text;
  n int;
BEGIN
  IF partitions_count IS NULL OR partitions_count < 1 THEN
    RAISE EXCEPTION 'partitions count must be greater than zero' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF partition_names IS NOT NULL AND cardinality(partition_names) <> partitions_count THEN
    RAISE EXCEPTION 'size of array "partition_names" must be equal to "partitions_count"' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  rest := pathman_replace(parent_relid, format('HASH ((%s))', expression), '');
  parent := own::regclass;
  PERFORM pathman_note(parent, NULL, partitions_count);
  IF NOT partition_data THEN
    PERFORM pathman_take(parent, rest, false, 'FOR VALUES WITH (MODULUS 1, REMAINDER 0)');
    RETURN 1;
  END IF;
  FOR n IN 0 .. partitions_count - 1 LOOP
    name := COALESCE(partition_names[n + 1],
      format('%I.%I', (SELECT nspname FROM pg_namespace ns JOIN pg_class c ON ns.oid = c.relnamespace WHERE c.oid = parent),
        (SELECT left(relname, 52) FROM pg_class WHERE oid = parent) || '_' || n));
    EXECUTE format('CREATE TABLE %s PARTITION OF %s FOR VALUES WITH (MODULUS %s, REMAINDER %s)', name, parent, partitions_count, n);
  END LOOP;
  PERFORM pathman_take(parent, rest, true, NULL);
  RETURN partitions_count;
END $$;

-- The name of the next partition by range.
CREATE FUNCTION pathman_name(parent regclass, wanted text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  own text;
  space text;
  n int;
  name text;
BEGIN
  IF wanted IS NOT NULL THEN
    RETURN wanted;
  END IF;
  SELECT left(c.relname, 52), ns.nspname INTO own, space FROM pg_class c JOIN pg_namespace ns ON ns.oid = c.relnamespace WHERE c.oid = parent;
  SELECT count(*) + 1 INTO n FROM pg_inherits WHERE inhparent = parent;
  LOOP
    name := format('%I.%I', space, own || '_' || n);
    EXIT WHEN to_regclass(name) IS NULL;
    n := n + 1;
  END LOOP;
  RETURN name;
END $$;

CREATE FUNCTION pathman_add(parent regclass, low text, high text, wanted text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  name text := pathman_name(parent, wanted);
BEGIN
  EXECUTE format('CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%s) TO (%s)', name, parent,
    COALESCE(quote_literal(low), 'MINVALUE'), COALESCE(quote_literal(high), 'MAXVALUE'));
  PERFORM pathman_call(parent, name::regclass);
  RETURN name::regclass::text;
END $$;

CREATE FUNCTION pathman_create_range(
  relation regclass, expression text, start text, step text, bounds text[], names text[], partition_data boolean, count int
) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  own text := relation::text;
  rest regclass;
  parent regclass;
  type regtype;
  low text := start;
  high text;
  last text;
  made int := 0;
  n int;
  done boolean;
BEGIN
  EXECUTE format('SELECT pg_typeof(%s) FROM (SELECT (NULL::%s).*) x', expression, relation) INTO type;
  rest := pathman_replace(relation, format('RANGE ((%s))', expression),
    CASE WHEN step IS NULL THEN '' ELSE format(' WITH (interval = %L)', step) END);
  parent := own::regclass;
  PERFORM pathman_note(parent, step, NULL);
  IF NOT partition_data THEN
    PERFORM pathman_take(parent, rest, false, 'DEFAULT');
    RETURN 0;
  END IF;
  IF bounds IS NOT NULL THEN
    FOR n IN 1 .. cardinality(bounds) - 1 LOOP
      PERFORM pathman_add(parent, bounds[n], bounds[n + 1], names[n]);
      made := made + 1;
    END LOOP;
  ELSE
    EXECUTE format('SELECT max(%s)::text FROM ONLY %s', expression, rest) INTO last;
    LOOP
      IF count IS NOT NULL THEN
        EXIT WHEN made >= count;
      ELSE
        EXECUTE format('SELECT %L::%s > %L::%s', low, type, last, type) INTO done;
        EXIT WHEN done IS NOT FALSE AND (last IS NULL OR done);
      END IF;
      high := pathman_next(low, step, type, 1);
      PERFORM pathman_add(parent, low, high, NULL);
      low := high;
      made := made + 1;
    END LOOP;
  END IF;
  PERFORM pathman_take(parent, rest, true, NULL);
  RETURN made;
END $$;

-- A value some steps on.
CREATE FUNCTION pathman_next(value text, step text, type regtype, direction int) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  answer text;
  unit text := CASE WHEN type IN ('date'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype) THEN 'interval' ELSE 'numeric' END;
BEGIN
  EXECUTE format('SELECT (%L::%s %s %L::%s)::%s::text', value, CASE unit WHEN 'numeric' THEN 'numeric' ELSE type::text END,
    CASE WHEN direction > 0 THEN '+' ELSE '-' END, step, unit, type) INTO answer;
  RETURN answer;
END $$;

CREATE FUNCTION create_range_partitions(
  parent_relid regclass, expression text, start_value anyelement, p_interval interval, p_count int DEFAULT NULL,
  partition_data boolean DEFAULT true
) RETURNS int LANGUAGE sql AS $$
  SELECT pathman_create_range(parent_relid, expression, start_value::text, p_interval::text, NULL, NULL, partition_data, p_count)
$$;

CREATE FUNCTION create_range_partitions(
  parent_relid regclass, expression text, start_value anyelement, p_interval anyelement, p_count int DEFAULT NULL,
  partition_data boolean DEFAULT true
) RETURNS int LANGUAGE sql AS $$
  SELECT pathman_create_range(parent_relid, expression, start_value::text, p_interval::text, NULL, NULL, partition_data, p_count)
$$;

CREATE FUNCTION create_range_partitions(
  parent_relid regclass, expression text, bounds anyarray, partition_names text[] DEFAULT NULL,
  tablespaces text[] DEFAULT NULL, partition_data boolean DEFAULT true
) RETURNS int LANGUAGE sql AS $$
  SELECT pathman_create_range(parent_relid, expression, NULL, NULL, bounds::text[], partition_names, partition_data, NULL)
$$;

CREATE FUNCTION pathman_step(parent regclass) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  step text;
BEGIN
  PERFORM pathman_expect(parent, 'r');
  SELECT range_interval INTO step FROM pathman_settings WHERE partrel = parent;
  IF step IS NULL THEN
    RAISE EXCEPTION 'table "%" has no interval', parent USING ERRCODE = 'invalid_parameter_value',
      HINT = 'Use set_interval, or add_range_partition with both bounds.';
  END IF;
  RETURN step;
END $$;

-- The first (ascending) or last partition by range.
CREATE FUNCTION pathman_edge(parent regclass, ascending boolean) RETURNS regclass LANGUAGE plpgsql STABLE AS $$
DECLARE
  found regclass;
BEGIN
  EXECUTE format('SELECT i.inhrelid::regclass FROM pg_inherits i, pathman_bounds(i.inhrelid::regclass) b WHERE i.inhparent = %s
      AND pg_get_expr((SELECT relpartbound FROM pg_class WHERE oid = i.inhrelid), i.inhrelid) <> ''DEFAULT''
    ORDER BY b.%s::%s %s NULLS FIRST LIMIT 1', parent::oid, CASE WHEN ascending THEN 'low' ELSE 'high' END,
    pathman_key_type(parent), CASE WHEN ascending THEN 'ASC' ELSE 'DESC' END) INTO found;
  IF found IS NULL THEN
    RAISE EXCEPTION 'table "%" has no partitions', parent USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  RETURN found;
END $$;

CREATE FUNCTION append_range_partition(parent_relid regclass, partition_name text DEFAULT NULL, tablespace text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  step text := pathman_step(parent_relid);
  high text;
BEGIN
  SELECT b.high INTO high FROM pathman_bounds(pathman_edge(parent_relid, false)) b;
  IF high IS NULL THEN
    RAISE EXCEPTION 'cannot append partition because last partition has no upper bound' USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  RETURN pathman_add(parent_relid, high, pathman_next(high, step, pathman_key_type(parent_relid), 1), partition_name);
END $$;

CREATE FUNCTION prepend_range_partition(parent_relid regclass, partition_name text DEFAULT NULL, tablespace text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  step text := pathman_step(parent_relid);
  low text;
BEGIN
  SELECT b.low INTO low FROM pathman_bounds(pathman_edge(parent_relid, true)) b;
  IF low IS NULL THEN
    RAISE EXCEPTION 'cannot prepend partition because first partition has no lower bound' USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  RETURN pathman_add(parent_relid, pathman_next(low, step, pathman_key_type(parent_relid), -1), low, partition_name);
END $$;

CREATE FUNCTION add_range_partition(
  parent_relid regclass, start_value anyelement, end_value anyelement, partition_name text DEFAULT NULL, tablespace text DEFAULT NULL
) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pathman_expect(parent_relid, 'r');
  RETURN pathman_add(parent_relid, start_value::text, end_value::text, partition_name);
END $$;

CREATE FUNCTION drop_range_partition(partition_relid regclass, delete_data boolean DEFAULT true) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  parent regclass := get_parent_of_partition(partition_relid);
  shown text := partition_relid::text;
BEGIN
  PERFORM pathman_expect(parent, 'r');
  IF delete_data THEN
    EXECUTE format('DROP TABLE %s', partition_relid);
  ELSE
    EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', parent, partition_relid);
  END IF;
  RETURN shown;
END $$;

CREATE FUNCTION attach_range_partition(
  parent_relid regclass, partition_relid regclass, start_value anyelement, end_value anyelement
) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pathman_expect(parent_relid, 'r');
  EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)', parent_relid, partition_relid,
    COALESCE(pathman_literal(start_value), 'MINVALUE'), COALESCE(pathman_literal(end_value), 'MAXVALUE'));
  PERFORM pathman_call(parent_relid, partition_relid);
  RETURN partition_relid::text;
END $$;

CREATE FUNCTION detach_range_partition(partition_relid regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  parent regclass := get_parent_of_partition(partition_relid);
BEGIN
  PERFORM pathman_expect(parent, 'r');
  EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', parent, partition_relid);
  RETURN partition_relid::text;
END $$;

CREATE FUNCTION split_range_partition(
  partition_relid regclass, split_value anyelement, partition_name text DEFAULT NULL, tablespace text DEFAULT NULL
) RETURNS regclass LANGUAGE plpgsql AS $$
DECLARE
  parent regclass := get_parent_of_partition(partition_relid);
  key text := pathman_key(parent);
  type regtype := pathman_key_type(parent);
  low text;
  high text;
  inside boolean;
  name text := pathman_name(parent, partition_name);
  columns text;
BEGIN
  PERFORM pathman_expect(parent, 'r');
  SELECT b.low, b.high INTO low, high FROM pathman_bounds(partition_relid) b;
  EXECUTE format('SELECT (%L IS NULL OR %L::%s > %L::%s) AND (%L IS NULL OR %L::%s < %L::%s)', low, split_value, type, low, type,
    high, split_value, type, high, type) INTO inside;
  IF NOT inside THEN
    RAISE EXCEPTION 'specified value does not fit into the range [%, %)', low, high USING ERRCODE = 'invalid_parameter_value';
  END IF;
  EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', parent);
  SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO columns FROM pg_attribute
    WHERE attrelid = parent AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
  EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING STORAGE)', name, parent);
  EXECUTE format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM %s WHERE %s >= %L::%s', name, columns, columns,
    partition_relid, key, split_value, type);
  EXECUTE format('DELETE FROM %s WHERE %s >= %L::%s', partition_relid, key, split_value, type);
  EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', parent, partition_relid);
  EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%L)', parent, partition_relid,
    COALESCE(quote_literal(low), 'MINVALUE'), split_value);
  EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%s)', parent, name, split_value,
    COALESCE(quote_literal(high), 'MAXVALUE'));
  PERFORM pathman_call(parent, name::regclass);
  RETURN name::regclass;
END $$;

CREATE FUNCTION merge_range_partitions(VARIADIC partitions regclass[]) RETURNS regclass LANGUAGE plpgsql AS $$
DECLARE
  parent regclass;
  type regtype;
  ordered regclass[];
  part regclass;
  low text;
  high text;
  begins text;
  ends text;
  columns text;
  n int;
BEGIN
  IF cardinality(partitions) < 2 THEN
    RAISE EXCEPTION 'cannot merge partitions' USING DETAIL = 'there must be at least two partitions', ERRCODE = 'invalid_parameter_value';
  END IF;
  parent := get_parent_of_partition(partitions[1]);
  PERFORM pathman_expect(parent, 'r');
  FOREACH part IN ARRAY partitions LOOP
    IF get_parent_of_partition(part) <> parent THEN
      RAISE EXCEPTION 'cannot merge partitions' USING DETAIL = 'all relations must share the same parent', ERRCODE = 'invalid_parameter_value';
    END IF;
  END LOOP;
  type := pathman_key_type(parent);
  EXECUTE format('SELECT array_agg(p ORDER BY b.low::%s NULLS FIRST) FROM unnest($1) p, pathman_bounds(p) b', type) INTO ordered USING partitions;
  EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', parent);
  SELECT b.low, b.high INTO begins, ends FROM pathman_bounds(ordered[1]) b;
  SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO columns FROM pg_attribute
    WHERE attrelid = parent AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
  FOR n IN 2 .. cardinality(ordered) LOOP
    SELECT b.low, b.high INTO low, high FROM pathman_bounds(ordered[n]) b;
    IF low IS DISTINCT FROM ends THEN
      RAISE EXCEPTION 'cannot merge partitions' USING DETAIL = 'partitions are not adjacent', ERRCODE = 'invalid_parameter_value';
    END IF;
    ends := high;
  END LOOP;
  EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', parent, ordered[1]);
  FOR n IN 2 .. cardinality(ordered) LOOP
    EXECUTE format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM %s', ordered[1], columns, columns, ordered[n]);
    EXECUTE format('DROP TABLE %s', ordered[n]);
  END LOOP;
  EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)', parent, ordered[1],
    COALESCE(quote_literal(begins), 'MINVALUE'), COALESCE(quote_literal(ends), 'MAXVALUE'));
  RETURN ordered[1];
END $$;

CREATE FUNCTION replace_hash_partition(old_partition regclass, new_partition regclass, lock_parent boolean DEFAULT true)
RETURNS regclass LANGUAGE plpgsql AS $$
DECLARE
  parent regclass := get_parent_of_partition(old_partition);
  bound text;
BEGIN
  PERFORM pathman_expect(parent, 'h');
  SELECT pg_get_expr(relpartbound, oid) INTO bound FROM pg_class WHERE oid = old_partition;
  EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', parent, old_partition);
  EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s %s', parent, new_partition, bound);
  PERFORM pathman_call(parent, new_partition);
  RETURN new_partition;
END $$;

-- The rows of all partitions come into one plain table, or go.
CREATE FUNCTION drop_partitions(parent_relid regclass, delete_data boolean DEFAULT false) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  own text;
  space text;
  rest text;
  number int := get_number_of_partitions(parent_relid);
BEGIN
  SELECT c.relname, n.nspname INTO own, space FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = parent_relid AND c.relkind = 'p';
  IF own IS NULL THEN
    RAISE EXCEPTION 'table "%" has no partitions', parent_relid USING ERRCODE = 'wrong_object_type';
  END IF;
  DELETE FROM pathman_settings WHERE partrel = parent_relid;
  rest := left(own, 58) || '_rest';
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', parent_relid);
  EXECUTE format('ALTER TABLE %s RENAME TO %I', parent_relid, rest);
  EXECUTE format('CREATE TABLE %I.%I (LIKE %I.%I INCLUDING ALL)', space, own, space, rest);
  PERFORM pathman_hand_over(parent_relid, format('%I.%I', space, own)::regclass);
  IF NOT delete_data THEN
    EXECUTE format('INSERT INTO %I.%I OVERRIDING SYSTEM VALUE SELECT * FROM %I.%I', space, own, space, rest);
  END IF;
  EXECUTE format('DROP TABLE %I.%I', space, rest);
  RETURN number;
END $$;

CREATE FUNCTION set_interval(relation regclass, value anyelement) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pathman_expect(relation, 'r');
  IF value IS NULL THEN
    EXECUTE format('ALTER TABLE %s RESET (interval)', relation);
  ELSE
    EXECUTE format('ALTER TABLE %s SET (interval = %L)', relation, value::text);
  END IF;
  INSERT INTO pathman_settings (partrel, range_interval) VALUES (relation, value::text)
    ON CONFLICT (partrel) DO UPDATE SET range_interval = EXCLUDED.range_interval;
END $$;

CREATE FUNCTION set_auto(parent regclass, value boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  step text;
BEGIN
  INSERT INTO pathman_settings (partrel, auto) VALUES (parent, value)
    ON CONFLICT (partrel) DO UPDATE SET auto = EXCLUDED.auto RETURNING range_interval INTO step;
  IF NOT value THEN
    EXECUTE format('ALTER TABLE %s RESET (interval)', parent);
  ELSIF step IS NOT NULL THEN
    EXECUTE format('ALTER TABLE %s SET (interval = %L)', parent, step);
  END IF;
END $$;

CREATE FUNCTION set_init_callback(relation regclass, callback regproc DEFAULT 0) RETURNS void LANGUAGE sql AS $$
  INSERT INTO pathman_settings (partrel, init_callback) VALUES (relation, NULLIF(callback::oid, 0)::regproc::text)
    ON CONFLICT (partrel) DO UPDATE SET init_callback = EXCLUDED.init_callback
$$;

-- Kept for those who set them; partitions are made in autonomous transactions, and the parent has no rows.
CREATE FUNCTION set_enable_parent(relation regclass, value boolean) RETURNS void LANGUAGE sql AS $$
  INSERT INTO pathman_settings (partrel, enable_parent) VALUES (relation, value)
    ON CONFLICT (partrel) DO UPDATE SET enable_parent = EXCLUDED.enable_parent
$$;

CREATE FUNCTION set_spawn_using_bgw(relation regclass, value boolean) RETURNS void LANGUAGE sql AS $$
  INSERT INTO pathman_settings (partrel, spawn_using_bgw) VALUES (relation, value)
    ON CONFLICT (partrel) DO UPDATE SET spawn_using_bgw = EXCLUDED.spawn_using_bgw
$$;

-- The server moves the rows, a partition at a time; see pg_stat_progress_partition.
CREATE FUNCTION partition_table_concurrently(relation regclass, batch_size int DEFAULT 1000, sleep_time float8 DEFAULT 1.0)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  number int;
BEGIN
  IF batch_size NOT BETWEEN 1 AND 10000 THEN
    RAISE EXCEPTION '"batch_size" should not be less than 1 or greater than 10000' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = relation AND partstrat = 'h') THEN
    SELECT hash_count INTO number FROM pathman_settings WHERE partrel = relation;
    EXECUTE format('ALTER TABLE %s SET (partitions = %s)', relation, number);
  ELSE
    PERFORM pathman_step(relation);
    EXECUTE format('ALTER TABLE %s SET (empty_default = true)', relation);
  END IF;
END $$;

CREATE FUNCTION stop_concurrent_part_task(relation regclass) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  found boolean := EXISTS (SELECT FROM pg_stat_progress_partition p WHERE p.relid = relation);
BEGIN
  IF found THEN
    EXECUTE format('ALTER TABLE %s RESET (partitions, empty_default)', relation);
  END IF;
  RETURN found;
END $$;

CREATE FUNCTION generate_range_bounds(p_start anyelement, p_interval interval, p_count int) RETURNS anyarray LANGUAGE plpgsql AS $$
BEGIN
  RETURN ARRAY(SELECT p_start + n * p_interval FROM generate_series(0, p_count) n);
END $$;

CREATE FUNCTION generate_range_bounds(p_start anyelement, p_interval anyelement, p_count int) RETURNS anyarray LANGUAGE plpgsql AS $$
BEGIN
  RETURN ARRAY(SELECT p_start + n * p_interval FROM generate_series(0, p_count) n);
END $$;

CREATE VIEW pathman_config AS
  SELECT p.partrelid::regclass AS partrel, pathman_key(p.partrelid::regclass) AS expr,
    CASE p.partstrat WHEN 'h' THEN 1 ELSE 2 END AS parttype, s.range_interval
  FROM pg_partitioned_table p LEFT JOIN pathman_settings s ON s.partrel = p.partrelid
  WHERE p.partstrat IN ('h', 'r');

CREATE VIEW pathman_config_params AS
  SELECT partrel, enable_parent, auto, init_callback, spawn_using_bgw FROM pathman_settings;

CREATE VIEW pathman_partition_list AS
  SELECT i.inhparent::regclass AS parent, i.inhrelid::regclass AS partition, c.parttype, c.expr,
    b.low AS range_min, b.high AS range_max
  FROM pg_inherits i JOIN pathman_config c ON c.partrel = i.inhparent, LATERAL pathman_bounds(i.inhrelid::regclass) b;

CREATE VIEW pathman_concurrent_part_tasks AS
  SELECT c.relowner::regrole AS userid, p.pid, p.datid AS dbid, p.relid::regclass AS relid, p.partitions_done AS processed,
    'working'::text AS status
  FROM pg_stat_progress_partition p JOIN pg_class c ON c.oid = p.relid WHERE p.datname = current_database();
GRANT SELECT ON pathman_config, pathman_config_params, pathman_partition_list, pathman_concurrent_part_tasks TO PUBLIC;
