-- sslinfo 1.2: the objects of PostgreSQL's extension, by the view pg_stat_ssl.

CREATE FUNCTION ssl_client_serial() RETURNS numeric
    AS $$SELECT client_serial FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()$$ LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION ssl_is_used() RETURNS boolean
    AS $$SELECT ssl FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()$$ LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION ssl_version() RETURNS text
    AS $$SELECT version FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()$$ LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION ssl_cipher() RETURNS text
    AS $$SELECT cipher FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()$$ LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION ssl_client_cert_present() RETURNS boolean
    AS $$SELECT client_dn IS NOT NULL FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()$$ LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION ssl_client_dn() RETURNS text
    AS $$SELECT client_dn FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()$$ LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION ssl_issuer_dn() RETURNS text
    AS $$SELECT issuer_dn FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()$$ LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION ssl_client_dn_field(text) RETURNS text
    AS $$SELECT (pg_catalog.regexp_match(client_dn, '(?:^|[/,])' || CASE $1 WHEN 'commonName' THEN 'CN' WHEN 'countryName' THEN 'C' WHEN 'localityName' THEN 'L' WHEN 'stateOrProvinceName' THEN 'ST' WHEN 'organizationName' THEN 'O' WHEN 'organizationalUnitName' THEN 'OU' ELSE $1 END || '=([^/,]*)'))[1] FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()$$ LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION ssl_issuer_field(text) RETURNS text
    AS $$SELECT (pg_catalog.regexp_match(issuer_dn, '(?:^|[/,])' || CASE $1 WHEN 'commonName' THEN 'CN' WHEN 'countryName' THEN 'C' WHEN 'localityName' THEN 'L' WHEN 'stateOrProvinceName' THEN 'ST' WHEN 'organizationName' THEN 'O' WHEN 'organizationalUnitName' THEN 'OU' ELSE $1 END || '=([^/,]*)'))[1] FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()$$ LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED;
