//! Snowball's algorithms by language: those of Snowball 2.2, which PostgreSQL 15 has, where a crate has them.

use std::borrow::Cow;

use tantivy_stemmers::algorithms as snowball;

/// Stems a word in lower case.
pub type Stem = fn(&str) -> String;

macro_rules! stems { ($($language:literal => $stem:expr;)*) => {
    /// The algorithm for a language.
    pub fn find(language: &str) -> Option<Stem> {
        fn owned(word: Cow<'_, str>) -> String {
            word.into_owned()
        }
        Some(match language.to_ascii_lowercase().as_str() {
            $($language => |word| owned($stem(word)),)*
            _ => return None,
        })
    }
} }

fn serbian(word: &str) -> Cow<'_, str> {
    waken_snowball::stem(waken_snowball::Algorithm::Serbian, word)
}

fn tamil(word: &str) -> Cow<'_, str> {
    waken_snowball::stem(waken_snowball::Algorithm::Tamil, word)
}

fn porter(word: &str) -> Cow<'_, str> {
    waken_snowball::stem(waken_snowball::Algorithm::Porter, word)
}

/// PostgreSQL 15's algorithm knows the letters with cedillas only, in which Romanian was written for long.
fn romanian(word: &str) -> Cow<'_, str> {
    snowball::romanian(word)
}

stems! {
    "arabic" => snowball::arabic;
    "armenian" => snowball::armenian_mkrtchyan;
    "basque" => snowball::basque;
    "catalan" => snowball::catalan;
    "danish" => snowball::danish;
    "dutch" => snowball::dutch;
    "english" => snowball::english_porter_2;
    "finnish" => snowball::finnish;
    "french" => snowball::french;
    "german" => snowball::german;
    "greek" => snowball::greek;
    "hindi" => snowball::hindi_lightweight;
    "hungarian" => snowball::hungarian;
    "indonesian" => snowball::indonesian_tala;
    "irish" => snowball::irish_gaelic;
    "italian" => snowball::italian;
    "lithuanian" => snowball::lithuanian_jocas;
    "nepali" => snowball::nepali;
    "norwegian" => snowball::norwegian_bokmal;
    "porter" => porter;
    "portuguese" => snowball::portuguese;
    "romanian" => romanian;
    "russian" => snowball::russian;
    "serbian" => serbian;
    "spanish" => snowball::spanish;
    "swedish" => snowball::swedish;
    "tamil" => tamil;
    "turkish" => snowball::turkish_cilden;
    "yiddish" => snowball::yiddish_urieli;
}
