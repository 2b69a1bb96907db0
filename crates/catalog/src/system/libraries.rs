//! PostgreSQL's libraries of functions in C, as `pg_proc.probin` names them. There are none here; what the catalog says
//! of its own functions names them.

/// The library that a function in C is in; None: it is not known.
pub(super) fn of_function(name: &str) -> Option<String> {
    let conversion = match name {
        "dsnowball_init" | "dsnowball_lexize" => return Some("dict_snowball".to_owned()),
        _ if name.starts_with("plpgsql_") => return Some("plpgsql".to_owned()),
        name => name.split_once("_to_")?,
    };
    let (from, to) = conversion;
    let other = if from == "utf8" { to } else { from };
    if from == "utf8" || to == "utf8" {
        let other = match other {
            "koi8r" | "koi8u" => "cyrillic",
            "euc_jis_2004" => "euc2004",
            "shift_jis_2004" => "sjis2004",
            other => other,
        };
        return Some(format!("utf8_and_{other}"));
    }
    let pair = [from, to];
    let has = |one: &str| pair.contains(&one);
    Some(
        if has("euc_jis_2004") {
            "euc2004_sjis2004"
        } else if has("euc_jp") || has("sjis") {
            "euc_jp_and_sjis"
        } else if has("euc_tw") || has("big5") {
            "euc_tw_and_big5"
        } else if has("euc_cn") {
            "euc_cn_and_mic"
        } else if has("euc_kr") {
            "euc_kr_and_mic"
        } else if has("latin2") || has("win1250") {
            "latin2_and_win1250"
        } else if pair.iter().any(|one| one.starts_with("latin")) {
            "latin_and_mic"
        } else {
            "cyrillic_and_mic"
        }
        .to_owned(),
    )
}
