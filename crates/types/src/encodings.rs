//! The names of PostgreSQL's encodings. Of the texts themselves only UTF-8, Latin-1 and bytes are known here.

/// Names and the most bytes of a character, by number.
const ENCODINGS: [(&str, i32); 42] = [
    ("SQL_ASCII", 1),
    ("EUC_JP", 3),
    ("EUC_CN", 3),
    ("EUC_KR", 3),
    ("EUC_TW", 4),
    ("EUC_JIS_2004", 3),
    ("UTF8", 4),
    ("MULE_INTERNAL", 4),
    ("LATIN1", 1),
    ("LATIN2", 1),
    ("LATIN3", 1),
    ("LATIN4", 1),
    ("LATIN5", 1),
    ("LATIN6", 1),
    ("LATIN7", 1),
    ("LATIN8", 1),
    ("LATIN9", 1),
    ("LATIN10", 1),
    ("WIN1256", 1),
    ("WIN1258", 1),
    ("WIN866", 1),
    ("WIN874", 1),
    ("KOI8R", 1),
    ("WIN1251", 1),
    ("WIN1252", 1),
    ("ISO_8859_5", 1),
    ("ISO_8859_6", 1),
    ("ISO_8859_7", 1),
    ("ISO_8859_8", 1),
    ("WIN1250", 1),
    ("WIN1253", 1),
    ("WIN1254", 1),
    ("WIN1255", 1),
    ("WIN1257", 1),
    ("KOI8U", 1),
    ("SJIS", 2),
    ("BIG5", 2),
    ("GBK", 2),
    ("UHC", 2),
    ("GB18030", 4),
    ("JOHAB", 3),
    ("SHIFT_JIS_2004", 2),
];

/// The number of the encoding with this name: letters and digits count, in either case.
pub fn number(name: &str) -> Option<i32> {
    let plain = |s: &str| {
        let kept = s.chars().filter(char::is_ascii_alphanumeric);
        kept.map(|c| c.to_ascii_uppercase()).collect::<String>()
    };
    let wanted = plain(name);
    let alias = match wanted.as_str() {
        "UNICODE" => "UTF8",
        "ISO88591" => "LATIN1",
        "ISO88592" => "LATIN2",
        "ISO88593" => "LATIN3",
        "ISO88594" => "LATIN4",
        "ISO88599" => "LATIN5",
        "ISO885910" => "LATIN6",
        "ISO885913" => "LATIN7",
        "ISO885914" => "LATIN8",
        "ISO885915" => "LATIN9",
        "ISO885916" => "LATIN10",
        "WIN" | "WINDOWS1251" => "WIN1251",
        "ALT" | "WINDOWS866" => "WIN866",
        "ABC" | "TCVN" | "TCVN5712" | "VSCII" | "WINDOWS1258" => "WIN1258",
        "KOI8" => "KOI8R",
        "MSKANJI" | "SHIFTJIS" | "WIN932" | "WINDOWS932" => "SJIS",
        "WIN936" | "WINDOWS936" => "GBK",
        "WIN949" | "WINDOWS949" => "UHC",
        "WIN950" | "WINDOWS950" => "BIG5",
        other => other.strip_prefix("WINDOWS").map_or(other, |n| {
            ENCODINGS
                .iter()
                .map(|e| e.0)
                .find(|e| e.strip_prefix("WIN") == Some(n))
                .unwrap_or(other)
        }),
    };
    ENCODINGS.iter().position(|(n, _)| plain(n) == alias).map(|n| n as i32)
}

/// The name and the most bytes of a character of the encoding with this number.
pub fn of_number(number: i32) -> Option<(&'static str, i32)> {
    ENCODINGS.get(usize::try_from(number).ok()?).copied()
}
