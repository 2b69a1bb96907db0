use super::{in_message, without_secrets};

/// Texts, with the secret's place in `<>`.
fn check(texts: &[&str], shown: fn(&str) -> std::borrow::Cow<'_, str>) {
    for marked in texts {
        let text = marked.replace(['<', '>'], "");
        let mut expected = String::new();
        for (n, part) in marked.split(['<', '>']).enumerate() {
            expected += if n % 2 == 0 { part } else { "********" };
        }
        assert_eq!(shown(&text), expected, "{text}");
    }
}

#[test]
fn passwords_of_roles() {
    let texts = [
        "CREATE ROLE r PASSWORD '<x>'",
        "alter user r pAssWord'<a''b>' login",
        r"ALTER ROLE r PASSWORD E'<a\'b>' x 'y'",
        "ALTER ROLE r PASSWORD U&'<a>' UESCAPE '!'",
        "ALTER ROLE r PASSWORD $a$<x'$$y>$a$ NOLOGIN",
        "ALTER ROLE r PASSWORD -- c\n /* d */ '<x>'",
        "DO 'ALTER ROLE r PASSWORD ''<it''''s>''; SELECT 1'",
        "DO $$ begin execute 'alter role r password ''<x>'''; end $$",
        "CREATE ROLE a PASSWORD '<x>'; CREATE ROLE b PASSWORD '<y>'; SELECT 'z'",
        "ALTER ROLE r PASSWORD '<cut off>",
        "ALTER ROLE r PASSWORD '<é>' || 'ü'",
        "create role \"password\" encrypted password '<x>'",
    ];
    check(&texts, without_secrets);
}

#[test]
fn secrets_of_other_statements() {
    let texts = [
        "CREATE SUBSCRIPTION s CONNECTION '<host=h password=x>' PUBLICATION p",
        "alter subscription s connection $$<postgresql://u:x@h/d>$$",
        "CREATE SERVER s FOREIGN DATA WRAPPER w OPTIONS (host 'h', \"Password\" '<x>', port '1')",
        "alter server s options (set api_token '<x>', add host 'h', drop secret)",
        "CREATE USER MAPPING FOR public SERVER s OPTIONS (user 'u', sesame E'<x>')",
        "alter user mapping for u server s options (set password U&'<x>')",
        "create foreign data wrapper w options (secret '<x>')",
        "create foreign table t (a int options (token '<x>')) server s options (pwd '<y>')",
        "import foreign schema a from server s into b options (credential '<x>')",
        "ALTER SYSTEM SET primary_conninfo = '<host=h>'",
        "alter system set pg_alert_webhook to '<http://h/x>'",
        "SET app.jwt_secret = '<x>'",
        "set local app.api_token to '<x>', '<y>'",
        "set session app.token = <x>",
        "set app.token to default",
        "alter database d set app.\"Secret\" to '<x>'",
        "alter role r in database d set a.passphrase = '<x>'",
        "create function f() returns int set app.secret = '<x>' as 'select 1' language sql",
        "select set_config('app.jwt_secret', '<x>', false), 'y'",
        "select set_config('primary_conninfo', '<x>', false)",
        "select pgp_sym_encrypt('data', '<x>'), crypt('<y>', gen_salt('bf')), hmac(a, '<z>', 'md5')",
    ];
    check(&texts, without_secrets);
}

#[test]
fn secrets_in_literals() {
    let texts = [
        "select dblink_connect('c', 'host=h password=<x> user=u')",
        "select dblink('host=h sslpassword = ''<a b>'' user=u', 'select 1')",
        r"select dblink(E'password=\'<a b>\' user=u')",
        r"select dblink('password=<a\ b> user=u')",
        "select dblink('postgresql://u:<x>@h/d?password=<y>', 'select ''z''')",
        "select net.post('http://h/', '{\"token\": \"<x>\", \"a\": 1}', 'Authorization: Bearer <y>')",
        "do $x$ begin perform dblink('host=h password=<x> user=u'); end $x$",
        "do 'begin perform dblink(''host=h password=<x> user=u''); end'",
        "create function f() returns int as $$ select 1 /* password=<x> */ $$ language sql",
        "select a /* postgres://u:<x>@h */ from t",
        "prepare p as select dblink_exec('password=<x",
    ];
    check(&texts, without_secrets);
}

#[test]
fn other_texts_stay() {
    for text in [
        "ALTER ROLE r PASSWORD NULL",
        "ALTER ROLE r PASSWORD $1",
        "SELECT role FROM t WHERE my_password = 'x'",
        "SELECT 'no role here' AS password",
        "SELECT password 'x'",
        "PASSWORD ROLE",
        "update t set password = 'x', token = $1 where connection = 'y'",
        "create server s foreign data wrapper w options (host 'h', dbname 'd')",
        "select 'http://h:80/a@b', 'a:b@c', x::token, token::text from t",
        "set search_path to secret, token; select 'x'",
        "create user mapping for u server s options (user 'u', password_required 'false')",
        "select 'token = $1', crypt",
        "",
    ] {
        assert_eq!(without_secrets(text), text);
    }
}

#[test]
fn messages_have_statements_between_words() {
    let texts = [
        "it can't be: SQL statement \"alter role r password '<x>'\"\nautonomous transaction \"select 1\"",
        "autonomous transaction \"create subscription s connection '<host=h>' publication p\"",
        "could not connect to \"host=h password=<x> user=u\"",
        "invalid address postgres://u:<x>@h/d",
        "host=a password=<b> user=c",
        "postgres://u:<p>@h:1/d",
        "Filter: (a = dblink('password=<x> user=u'::text))",
    ];
    check(&texts, in_message);
    let text = "could not find the word password in role \"it's\"";
    assert_eq!(in_message(text), text);
}

#[test]
fn broken_texts_are_no_harm() {
    let parts = [
        "password", "'", "''", "$a$", "$", "role", "\"", "(", "options", "E'", "\\", "é", "--",
        "/*",
    ];
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut text = String::from("://");
        for _ in 0..12 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text += parts[(state >> 33) as usize % parts.len()];
            text += if state & 1 << 40 == 0 { "" } else { " " };
        }
        without_secrets(&text);
        in_message(&text);
    }
}
