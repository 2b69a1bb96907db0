-- earthdistance 1.1: the objects of PostgreSQL's extension.

CREATE FUNCTION earth() RETURNS double precision
    AS $$SELECT '6378168'::float8$$ LANGUAGE sql IMMUTABLE PARALLEL SAFE;
CREATE DOMAIN earth AS cube CHECK (cube_is_point(VALUE)) CHECK ((cube_dim(VALUE) <= 3)) CHECK ((abs(((cube_distance(VALUE, '(0)'::cube) / earth()) - '1'::double precision)) < '1e-06'::double precision));
CREATE FUNCTION geo_distance(point, point) RETURNS double precision
    AS 'MODULE_PATHNAME', 'geo_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR <@> (FUNCTION = geo_distance, LEFTARG = point, RIGHTARG = point, COMMUTATOR = <@>);
CREATE FUNCTION sec_to_gc(double precision) RETURNS double precision
    AS $$SELECT CASE WHEN $1 < 0 THEN 0::float8 WHEN $1/(2*earth()) > 1 THEN pi()*earth() ELSE 2*earth()*asin($1/(2*earth())) END$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gc_to_sec(double precision) RETURNS double precision
    AS $$SELECT CASE WHEN $1 < 0 THEN 0::float8 WHEN $1/earth() > pi() THEN 2*earth() ELSE 2*earth()*sin($1/(2*earth())) END$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ll_to_earth(double precision, double precision) RETURNS earth
    AS $$SELECT cube(cube(cube(earth()*cos(radians($1))*cos(radians($2))),earth()*cos(radians($1))*sin(radians($2))),earth()*sin(radians($1)))::earth$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION latitude(earth) RETURNS double precision
    AS $$SELECT CASE WHEN cube_ll_coord($1, 3)/earth() < -1 THEN -90::float8 WHEN cube_ll_coord($1, 3)/earth() > 1 THEN 90::float8 ELSE degrees(asin(cube_ll_coord($1, 3)/earth())) END$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION longitude(earth) RETURNS double precision
    AS $$SELECT degrees(atan2(cube_ll_coord($1, 2), cube_ll_coord($1, 1)))$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION earth_distance(earth, earth) RETURNS double precision
    AS $$SELECT sec_to_gc(cube_distance($1, $2))$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION earth_box(earth, double precision) RETURNS cube
    AS $$SELECT cube_enlarge($1, gc_to_sec($2), 3)$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
