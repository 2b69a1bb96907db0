//! PostgreSQL's encodings: their names here, their characters in [`characters`], whole texts in [`convert`].
//!
//! A database's texts are UTF-8. Another encoding is met where a text comes or goes: a client's messages, COPY's
//! data, `convert_from` and kin. Each way goes through Unicode, one character at a time, so that an error can
//! name the bytes of the character that it is about.
//!
//! MULE_INTERNAL, EUC_TW, JOHAB and the encodings of JIS X 0213 have names and numbers but no characters here.

pub mod ascii;
mod characters;
mod convert;
mod differences;

pub use convert::{
    Recoder, between, check, count, from_utf8, from_utf8_lossy, require, to_utf8, utf8,
};

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

/// An encoding, by PostgreSQL's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encoding(u8);

impl Default for Encoding {
    fn default() -> Encoding {
        Encoding::UTF8
    }
}

impl Encoding {
    /// Bytes of which only those below 128 mean something.
    pub const SQL_ASCII: Encoding = Encoding(0);
    /// EUC_JP.
    pub const EUC_JP: Encoding = Encoding(1);
    /// EUC_CN.
    pub const EUC_CN: Encoding = Encoding(2);
    /// EUC_KR.
    pub const EUC_KR: Encoding = Encoding(3);
    /// UTF-8: what databases hold.
    pub const UTF8: Encoding = Encoding(6);
    /// LATIN1.
    pub const LATIN1: Encoding = Encoding(8);
    /// SJIS.
    pub const SJIS: Encoding = Encoding(35);
    /// BIG5.
    pub const BIG5: Encoding = Encoding(36);
    /// GBK.
    pub const GBK: Encoding = Encoding(37);
    /// UHC.
    pub const UHC: Encoding = Encoding(38);
    /// GB18030.
    pub const GB18030: Encoding = Encoding(39);

    /// The encoding with this name, as [`number`] finds it.
    pub fn find(name: &str) -> Option<Encoding> {
        match name {
            "UTF8" => Some(Encoding::UTF8),
            _ => number(name).map(|n| Encoding(n as u8)),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        of_number(self.number()).map_or("", |e| e.0)
    }

    /// PostgreSQL's number.
    pub fn number(self) -> i32 {
        i32::from(self.0)
    }

    /// Whether clients only have it: a backslash may be the second byte of a character.
    pub fn is_client_only(self) -> bool {
        self.number() >= 35
    }

    /// Whether a client that speaks it gets and sends the database's bytes as they are.
    pub fn is_plain(self) -> bool {
        matches!(self, Encoding::UTF8 | Encoding::SQL_ASCII)
    }

    /// Whether its characters are known here.
    pub fn is_known(self) -> bool {
        self.is_plain() || characters::is_known(self)
    }
}

/// The name and the most bytes of a character of the encoding with this number.
pub fn of_number(number: i32) -> Option<(&'static str, i32)> {
    ENCODINGS.get(usize::try_from(number).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_go_by_any_spelling() {
        let name = |text| Encoding::find(text).map(Encoding::name);
        assert_eq!(name("utf-8"), Some("UTF8"));
        assert_eq!(name("Unicode"), Some("UTF8"));
        assert_eq!(name("iso-8859-15"), Some("LATIN9"));
        assert_eq!(name("Windows-932"), Some("SJIS"));
        assert_eq!(name("nosuch"), None);
        assert!(!Encoding::find("mule_internal").is_some_and(Encoding::is_known));
    }
}
