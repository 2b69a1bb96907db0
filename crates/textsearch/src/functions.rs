//! The bodies of functions, by key.

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use types::datum::Shape;
use types::func::Body;
use types::io::FormatContext;
use types::{Datum, Text, oids};

use crate::config::{self, Config};
use crate::dictionary;
use crate::document::{self, Join, Parsed};
use crate::execute;
use crate::headline::headline;
use crate::json::{self, Parts};
use crate::options::Options;
use crate::parse;
use crate::parser::{KINDS, Parser};
use crate::query::{Builder, MAX_DISTANCE, Node, TsQuery};
use crate::rank;
use crate::rewrite;
use crate::vector::{
    Lexeme, Position, Positions, TSVECTOR, TsVector, sort_positions, weight_letter,
};

type Args<'a> = &'a [Datum];

fn vector(d: &Datum) -> &TsVector {
    d.as_open()
}

fn query(d: &Datum) -> &TsQuery {
    d.as_open()
}

fn config_of(d: &Datum) -> Result<Config> {
    Config::get(Oid(d.as_oid()))
}

/// The configuration of a call, and the arguments behind it: the session's, or the first argument.
fn configured<'a>(a: Args<'a>, cx: &FormatContext, by_id: bool) -> Result<(Config, Args<'a>)> {
    match by_id {
        true => Ok((config_of(&a[0])?, &a[1..])),
        false => Ok((Config::default(cx)?, a)),
    }
}

fn to_tsvector<const BY_ID: bool>(a: Args<'_>, cx: &FormatContext) -> Result<Datum> {
    let (mut config, rest) = configured(a, cx, BY_ID)?;
    document::vector(&mut config, rest[0].as_str()).map(Datum::open)
}

/// Texts of a JSON document, each a place behind the one before.
struct Gather {
    parsed: Parsed,
    config: Config,
    any: bool,
}

impl Gather {
    fn add(&mut self, text: &str) -> Result<()> {
        if self.any && !self.parsed.lexemes.is_empty() {
            self.parsed.last_place += 1;
        }
        self.any = true;
        self.parsed.add(&mut self.config, text)
    }
}

fn json_vector(config: Config, document: &Datum, parts: Parts) -> Result<Datum> {
    let mut gather = Gather { parsed: Parsed::default(), config, any: false };
    match document {
        Datum::Jsonb(value) => json::each(value, parts, &mut |text| gather.add(text))?,
        text => json::each_of_text(text.as_str(), parts, &mut |text| gather.add(text))?,
    }
    gather.parsed.into_vector().map(Datum::open)
}

fn json_strings<const BY_ID: bool>(a: Args<'_>, cx: &FormatContext) -> Result<Datum> {
    let (config, rest) = configured(a, cx, BY_ID)?;
    json_vector(config, &rest[0], Parts::STRINGS)
}

fn json_parts<const BY_ID: bool>(a: Args<'_>, cx: &FormatContext) -> Result<Datum> {
    let (config, rest) = configured(a, cx, BY_ID)?;
    json_vector(config, &rest[0], Parts::read(rest[1].as_jsonb())?)
}

/// The query without stops; says when nothing is left of it.
fn finished(builder: Builder, root: Option<u32>, text: &str) -> Result<Datum> {
    let Some(root) = root else {
        types::user::notice(err!(
            SUCCESSFUL_COMPLETION,
            "text-search query doesn't contain lexemes: \"{text}\""
        ));
        return Ok(Datum::open(TsQuery::default()));
    };
    let whole = TsQuery { nodes: builder.0 }.part(root);
    let kept = execute::without_stops(whole)?;
    if kept.nodes.is_empty() {
        types::user::notice(err!(
            SUCCESSFUL_COMPLETION,
            "text-search query contains only stop words or doesn't contain lexemes, ignored"
        ));
    }
    kept.into_value()
}

fn to_tsquery<const BY_ID: bool>(a: Args<'_>, cx: &FormatContext) -> Result<Datum> {
    let (mut config, rest) = configured(a, cx, BY_ID)?;
    let text = rest[0].as_str();
    let mut make = |builder: &mut Builder, word: &str, weights: u8, prefix: bool| {
        document::operand(&mut config, builder, (word, weights, prefix), Join::Phrase).map(Some)
    };
    let (builder, root) = parse::standard(text, &mut make)?;
    finished(builder, root, text)
}

fn plain(config: &mut Config, text: &str, join: Join) -> Result<Datum> {
    if text.is_empty() {
        return finished(Builder::default(), None, text);
    }
    let mut builder = Builder::default();
    let root = document::operand(config, &mut builder, (text, 0, false), join)?;
    finished(builder, Some(root), text)
}

fn plainto<const BY_ID: bool>(a: Args<'_>, cx: &FormatContext) -> Result<Datum> {
    let (mut config, rest) = configured(a, cx, BY_ID)?;
    plain(&mut config, rest[0].as_str(), Join::And)
}

fn phraseto<const BY_ID: bool>(a: Args<'_>, cx: &FormatContext) -> Result<Datum> {
    let (mut config, rest) = configured(a, cx, BY_ID)?;
    plain(&mut config, rest[0].as_str(), Join::Phrase)
}

fn websearch<const BY_ID: bool>(a: Args<'_>, cx: &FormatContext) -> Result<Datum> {
    let (mut config, rest) = configured(a, cx, BY_ID)?;
    let text = rest[0].as_str();
    let mut make = |builder: &mut Builder, word: &str, weights: u8, prefix: bool| {
        document::operand(&mut config, builder, (word, weights, prefix), Join::Phrase).map(Some)
    };
    let (builder, root) = parse::websearch(text, &mut make)?;
    finished(builder, root, text)
}

fn headline_options(rest: &[Datum]) -> Result<Options> {
    rest.get(2).map_or(Ok(Options::default()), |o| Options::parse(o.as_str()))
}

fn ts_headline<const BY_ID: bool>(a: Args<'_>, cx: &FormatContext) -> Result<Datum> {
    let (mut config, rest) = configured(a, cx, BY_ID)?;
    let options = headline_options(rest)?;
    headline(&mut config, rest[0].as_str(), query(&rest[1]), &options).map(Datum::from)
}

fn headline_jsonb<const BY_ID: bool>(a: Args<'_>, cx: &FormatContext) -> Result<Datum> {
    let (mut config, rest) = configured(a, cx, BY_ID)?;
    let options = headline_options(rest)?;
    let mut of = |text: &str| headline(&mut config, text, query(&rest[1]), &options);
    json::map(rest[0].as_jsonb(), &mut of).map(Datum::jsonb)
}

fn headline_json<const BY_ID: bool>(a: Args<'_>, cx: &FormatContext) -> Result<Datum> {
    let (mut config, rest) = configured(a, cx, BY_ID)?;
    let options = headline_options(rest)?;
    let mut of = |text: &str| headline(&mut config, text, query(&rest[1]), &options);
    let mut out = Vec::new();
    json::map_text(rest[0].as_str(), &mut out, &mut of)?;
    types::bulk::text(out).map(Datum::Text)
}

/// The weight that a letter names.
fn weight_of(letter: u8) -> Result<u8> {
    match letter.to_ascii_uppercase() {
        b'A' => Ok(3),
        b'B' => Ok(2),
        b'C' => Ok(1),
        b'D' => Ok(0),
        _ => {
            let shown = match letter {
                b' '..=b'~' => char::from(letter).to_string(),
                letter => format!("\\{letter:03o}"),
            };
            Err(err!(INVALID_PARAMETER_VALUE, "unrecognized weight: \"{shown}\""))
        }
    }
}

fn with_positions(v: &TsVector, mut f: impl FnMut(&Lexeme) -> Option<Positions>) -> Datum {
    let lexeme = |l: &Lexeme| Some(Lexeme { word: l.word.clone(), positions: f(l)? });
    Datum::open(TsVector { lexemes: v.lexemes.iter().filter_map(lexeme).collect() })
}

fn set_weight(l: &Lexeme, weight: u8) -> Positions {
    l.positions.iter().map(|p| p.with_weight(weight)).collect()
}

fn setweight(a: Args<'_>, _cx: &FormatContext) -> Result<Datum> {
    let weight = weight_of(a[1].as_char())?;
    Ok(with_positions(vector(&a[0]), |l| Some(set_weight(l, weight))))
}

/// Lexemes in an array, NULLs left out.
fn some_lexemes(d: &Datum) -> Vec<&str> {
    d.as_array().items.iter().filter(|i| !i.is_null()).map(Datum::as_str).collect()
}

/// Lexemes in an array, NULLs refused.
fn lexeme_list(d: &Datum) -> Result<Vec<&str>> {
    d.as_array()
        .items
        .iter()
        .map(|item| match item {
            Datum::Null => Err(err!(NULL_VALUE_NOT_ALLOWED, "lexeme array may not contain nulls")),
            text => Ok(text.as_str()),
        })
        .collect()
}

fn setweight_of(a: Args<'_>, _cx: &FormatContext) -> Result<Datum> {
    let weight = weight_of(a[1].as_char())?;
    let wanted = some_lexemes(&a[2]);
    Ok(with_positions(vector(&a[0]), |l| {
        Some(if wanted.contains(&l.word.as_str()) {
            set_weight(l, weight)
        } else {
            l.positions.clone()
        })
    }))
}

fn ts_filter(a: Args<'_>, _cx: &FormatContext) -> Result<Datum> {
    let mut mask = 0u8;
    for item in &a[1].as_array().items {
        match item {
            Datum::Null => {
                return Err(err!(NULL_VALUE_NOT_ALLOWED, "weight array may not contain nulls"));
            }
            letter => mask |= 1 << weight_of(letter.as_char())?,
        }
    }
    Ok(with_positions(vector(&a[0]), |l| {
        let kept: Positions =
            l.positions.iter().copied().filter(|p| mask >> p.weight() & 1 == 1).collect();
        (!kept.is_empty()).then_some(kept)
    }))
}

fn ts_delete(v: &TsVector, words: &[&str]) -> Datum {
    with_positions(v, |l| (!words.contains(&l.word.as_str())).then(|| l.positions.clone()))
}

fn concat(a: Args<'_>, _cx: &FormatContext) -> Result<Datum> {
    let (left, right) = (vector(&a[0]), vector(&a[1]));
    let by = usize::from(left.last_place());
    let mut lexemes = Vec::with_capacity(left.lexemes.len() + right.lexemes.len());
    let (mut x, mut y) = (left.lexemes.iter().peekable(), right.lexemes.iter().peekable());
    let moved = |l: &Lexeme| {
        let mut positions: Positions = l
            .positions
            .iter()
            .map(|p| Position::new(usize::from(p.place()) + by, p.weight()))
            .collect();
        sort_positions(&mut positions);
        Lexeme { word: l.word.clone(), positions }
    };
    loop {
        sched::check_interrupts()?;
        let order = match (x.peek(), y.peek()) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.word.as_bytes().cmp(b.word.as_bytes()),
        };
        match order {
            std::cmp::Ordering::Less => lexemes.extend(x.next().cloned()),
            std::cmp::Ordering::Greater => lexemes.extend(y.next().map(moved)),
            std::cmp::Ordering::Equal => {
                if let (Some(a), Some(b)) = (x.next(), y.next()) {
                    let mut both = a.clone();
                    both.positions.extend(moved(b).positions);
                    sort_positions(&mut both.positions);
                    lexemes.push(both);
                }
            }
        }
    }
    TsVector { lexemes }.checked().map(Datum::open)
}

fn words(v: &TsVector) -> Vec<Datum> {
    v.lexemes.iter().map(|l| Datum::Text(l.word.clone())).collect()
}

fn from_array(a: Args<'_>, _cx: &FormatContext) -> Result<Datum> {
    let mut lexemes = Vec::new();
    for word in lexeme_list(&a[0])? {
        if word.is_empty() {
            return Err(err!(
                ZERO_LENGTH_CHARACTER_STRING,
                "lexeme array may not contain empty strings"
            ));
        }
        if word.len() > crate::vector::MAX_LEXEME_BYTES {
            return Err(crate::vector::too_long(word.len()));
        }
        lexemes.push(Lexeme { word: word.into(), positions: Positions::new() });
    }
    TsVector::of(lexemes).map(Datum::open)
}

fn row(shape: &Arc<Shape>, fields: Vec<Datum>) -> Datum {
    Datum::record(shape.clone(), fields)
}

fn shape(columns: &[(&str, Oid)]) -> Arc<Shape> {
    let columns = columns.iter().map(|(name, ty)| (Text::from(*name), *ty)).collect();
    Arc::new(Shape { ty: oids::RECORD, columns })
}

fn unnest(a: Args<'_>, _cx: &FormatContext) -> Result<Vec<Datum>> {
    let shape = shape(&[("lexeme", oids::TEXT), ("positions", Oid(1005)), ("weights", Oid(1009))]);
    let one = |l: &Lexeme| {
        let list = |f: &dyn Fn(&Position) -> Datum, element| match l.positions.is_empty() {
            true => Datum::Null,
            false => Datum::array(element, l.positions.iter().map(f).collect()),
        };
        row(
            &shape,
            vec![
                Datum::Text(l.word.clone()),
                list(&|p| Datum::Int2(p.place() as i16), oids::INT2),
                list(&|p| Datum::from(weight_letter(p.weight()).to_string()), oids::TEXT),
            ],
        )
    };
    Ok(vector(&a[0]).lexemes.iter().map(one).collect())
}

fn compare(a: Args<'_>) -> std::cmp::Ordering {
    types::order::compare(&a[0], &a[1])
}

fn parser_named(name: &str) -> Result<()> {
    let plain = name.strip_prefix("pg_catalog.").unwrap_or(name);
    match plain {
        "default" => Ok(()),
        _ if types::user::text_search_parser(name) => Ok(()),
        _ => Err(err!(UNDEFINED_OBJECT, "text search parser \"{name}\" does not exist")),
    }
}

const DEFAULT_PARSER: u32 = 3722;

fn parser_by_id(d: &Datum) -> Result<()> {
    match d.as_oid() {
        DEFAULT_PARSER => Ok(()),
        id => match types::user::text_search(oids::REGDICTIONARY, id).as_deref() {
            Some(types::user::TextSearch::Parser) => Ok(()),
            _ => Err(Error::internal(format!("cache lookup failed for text search parser {id}"))),
        },
    }
}

fn ts_parse(text: &str) -> Result<Vec<Datum>> {
    let shape = shape(&[("tokid", oids::INT4), ("token", oids::TEXT)]);
    let mut out = Vec::new();
    for token in Parser::new(text) {
        sched::check_interrupts()?;
        out.push(row(&shape, vec![Datum::Int4(token.kind), Datum::text(token.text)]));
    }
    Ok(out)
}

fn token_types() -> Vec<Datum> {
    let shape = shape(&[("tokid", oids::INT4), ("alias", oids::TEXT), ("description", oids::TEXT)]);
    let one = |(id, alias, description): &(i32, &str, &str)| {
        row(&shape, vec![Datum::Int4(*id), Datum::text(alias), Datum::text(description)])
    };
    KINDS.iter().map(one).collect()
}

fn ts_lexize(a: Args<'_>, _cx: &FormatContext) -> Result<Datum> {
    let dictionary = dictionary::get(Oid(a[0].as_oid()))?;
    Ok(match dictionary.lexize(a[1].as_str())? {
        None => Datum::Null,
        Some(norms) => {
            Datum::array(oids::TEXT, norms.into_iter().map(|n| Datum::Text(n.word)).collect())
        }
    })
}

fn ts_debug(config: &mut Config, text: &str) -> Result<Vec<Datum>> {
    const REGDICTIONARIES: Oid = Oid(3770);
    let shape = shape(&[
        ("alias", oids::TEXT),
        ("description", oids::TEXT),
        ("token", oids::TEXT),
        ("dictionaries", REGDICTIONARIES),
        ("dictionary", oids::REGDICTIONARY),
        ("lexemes", Oid(1009)),
    ]);
    let mut out = Vec::new();
    for token in Parser::new(text) {
        sched::check_interrupts()?;
        let Some((_, alias, description)) = KINDS.iter().find(|k| k.0 == token.kind) else {
            continue;
        };
        let dictionaries = config.dictionaries(token.kind)?;
        let ids = dictionaries.iter().map(|(id, _)| Datum::Oid(id.0)).collect();
        let (mut used, mut lexemes) = (Datum::Null, Datum::Null);
        for (id, dictionary) in dictionaries.iter() {
            if let Some(norms) = dictionary.lexize(token.text)? {
                used = Datum::Oid(id.0);
                let texts = norms.into_iter().map(|n| Datum::Text(n.word)).collect();
                lexemes = Datum::array(oids::TEXT, texts);
                break;
            }
        }
        out.push(row(
            &shape,
            vec![
                Datum::text(alias),
                Datum::text(description),
                Datum::text(token.text),
                Datum::array(oids::REGDICTIONARY, ids),
                used,
                lexemes,
            ],
        ));
    }
    Ok(out)
}

fn phrase(a: Args<'_>, distance: i32) -> Result<Datum> {
    let distance = u16::try_from(distance).ok().filter(|d| *d <= MAX_DISTANCE);
    let Some(distance) = distance else { return Err(parse::bad_distance()) };
    let (left, right) = (query(&a[0]), query(&a[1]));
    let mut builder = Builder::default();
    let root = match (builder.push_query(left), builder.push_query(right)) {
        (Some(a), Some(b)) => Some(builder.push(Node::Phrase(a, b, distance))),
        (a, b) => a.or(b),
    };
    builder.finish(root).into_value()
}

fn negation(a: Args<'_>, _cx: &FormatContext) -> Result<Datum> {
    let mut builder = Builder::default();
    let root = builder.push_query(query(&a[0])).map(|root| builder.push(Node::Not(root)));
    builder.finish(root).into_value()
}

fn matches(v: &Datum, q: &Datum) -> Result<Datum> {
    execute::matches(query(q), vector(v)).map(Datum::Bool)
}

fn match_text(a: Args<'_>, cx: &FormatContext) -> Result<Datum> {
    let document = document::vector(&mut Config::default(cx)?, a[0].as_str())?;
    execute::matches(query(&a[1]), &document).map(Datum::Bool)
}

fn match_texts(a: Args<'_>, cx: &FormatContext) -> Result<Datum> {
    let mut config = Config::default(cx)?;
    let document = document::vector(&mut config, a[0].as_str())?;
    let query = plain(&mut config, a[1].as_str(), Join::And)?;
    execute::matches(query.as_open(), &document).map(Datum::Bool)
}

fn querytree(a: Args<'_>, _cx: &FormatContext) -> Result<Datum> {
    Ok(match rewrite::indexable(query(&a[0]))? {
        None => Datum::text("T"),
        Some(q) => Datum::from(q.text()?),
    })
}

fn ts_rank<const WEIGHTS: bool, const METHOD: bool, const COVER: bool>(
    a: Args<'_>,
    _cx: &FormatContext,
) -> Result<Datum> {
    let (weights, rest) = match WEIGHTS {
        true => (rank::weights(&a[0])?, &a[1..]),
        false => (rank::USUAL, a),
    };
    let method = if METHOD { rest[2].as_int4() } else { 0 };
    let of = if COVER { rank::rank_cd } else { rank::rank };
    of(&weights, vector(&rest[0]), query(&rest[1]), method).map(Datum::Float4)
}

fn read<const VECTOR: bool>(a: Args<'_>, cx: &FormatContext) -> Result<Datum> {
    let ty = if VECTOR { TSVECTOR } else { crate::query::TSQUERY };
    types::io::input(ty, -1, a[0].as_str(), cx)
}

/// A comparison by its key and what it asks of the order.
macro_rules! comparisons { ($($vector:literal $query:literal $is:ident;)*) => {
    [$(($vector, Body::Scalar(|a, _| Ok(compare(a).$is().into()))),
       ($query, Body::Scalar(|a, _| Ok(compare(a).$is().into())))),*]
} }

pub(crate) fn bodies() -> Vec<(&'static str, Body)> {
    let s = Body::Scalar;
    let mut out = vec![
        ("tsvectorin", s(read::<true>)),
        ("tsqueryin", s(read::<false>)),
        ("get_current_ts_config", s(|_, cx| config::current(cx).map(Datum::from))),
        ("to_tsvector", s(to_tsvector::<false>)),
        ("to_tsvector_byid", s(to_tsvector::<true>)),
        ("json_string_to_tsvector", s(json_strings::<false>)),
        ("jsonb_string_to_tsvector", s(json_strings::<false>)),
        ("json_string_to_tsvector_byid", s(json_strings::<true>)),
        ("jsonb_string_to_tsvector_byid", s(json_strings::<true>)),
        ("json_to_tsvector", s(json_parts::<false>)),
        ("jsonb_to_tsvector", s(json_parts::<false>)),
        ("json_to_tsvector_byid", s(json_parts::<true>)),
        ("jsonb_to_tsvector_byid", s(json_parts::<true>)),
        ("to_tsquery", s(to_tsquery::<false>)),
        ("to_tsquery_byid", s(to_tsquery::<true>)),
        ("plainto_tsquery", s(plainto::<false>)),
        ("plainto_tsquery_byid", s(plainto::<true>)),
        ("phraseto_tsquery", s(phraseto::<false>)),
        ("phraseto_tsquery_byid", s(phraseto::<true>)),
        ("websearch_to_tsquery", s(websearch::<false>)),
        ("websearch_to_tsquery_byid", s(websearch::<true>)),
        ("ts_headline", s(ts_headline::<false>)),
        ("ts_headline_opt", s(ts_headline::<false>)),
        ("ts_headline_byid", s(ts_headline::<true>)),
        ("ts_headline_byid_opt", s(ts_headline::<true>)),
        ("ts_headline_jsonb", s(headline_jsonb::<false>)),
        ("ts_headline_jsonb_opt", s(headline_jsonb::<false>)),
        ("ts_headline_jsonb_byid", s(headline_jsonb::<true>)),
        ("ts_headline_jsonb_byid_opt", s(headline_jsonb::<true>)),
        ("ts_headline_json", s(headline_json::<false>)),
        ("ts_headline_json_opt", s(headline_json::<false>)),
        ("ts_headline_json_byid", s(headline_json::<true>)),
        ("ts_headline_json_byid_opt", s(headline_json::<true>)),
        ("tsvector_length", s(|a, _| Ok(Datum::Int4(vector(&a[0]).lexemes.len() as i32)))),
        ("tsvector_strip", s(|a, _| Ok(with_positions(vector(&a[0]), |_| Some(Positions::new()))))),
        ("tsvector_setweight", s(setweight)),
        ("tsvector_setweight_by_filter", s(setweight_of)),
        ("tsvector_filter", s(ts_filter)),
        ("tsvector_delete_str", s(|a, _| Ok(ts_delete(vector(&a[0]), &[a[1].as_str()])))),
        ("tsvector_delete_arr", s(|a, _| Ok(ts_delete(vector(&a[0]), &some_lexemes(&a[1]))))),
        ("tsvector_concat", s(concat)),
        ("tsvector_to_array", s(|a, _| Ok(Datum::array(oids::TEXT, words(vector(&a[0])))))),
        ("array_to_tsvector", s(from_array)),
        ("tsvector_unnest", Body::Set(unnest)),
        ("tsvector_cmp", s(|a, _| Ok(Datum::Int4(compare(a) as i32)))),
        ("tsquery_cmp", s(|a, _| Ok(Datum::Int4(compare(a) as i32)))),
        ("ts_match_vq", s(|a, _| matches(&a[0], &a[1]))),
        ("ts_match_qv", s(|a, _| matches(&a[1], &a[0]))),
        ("ts_match_tq", s(match_text)),
        ("ts_match_tt", s(match_texts)),
        ("tsquery_and", s(|a, _| query(&a[0]).joined(query(&a[1]), Node::And).into_value())),
        ("tsquery_or", s(|a, _| query(&a[0]).joined(query(&a[1]), Node::Or).into_value())),
        ("tsquery_not", s(negation)),
        ("tsquery_phrase", s(|a, _| phrase(a, 1))),
        ("tsquery_phrase_distance", s(|a, _| phrase(a, a[2].as_int4()))),
        ("tsquery_numnode", s(|a, _| Ok(Datum::Int4(query(&a[0]).nodes.len() as i32)))),
        ("tsquerytree", s(querytree)),
        ("tsq_mcontains", s(|a, _| Ok(rewrite::contains(query(&a[0]), query(&a[1])).into()))),
        ("tsq_mcontained", s(|a, _| Ok(rewrite::contains(query(&a[1]), query(&a[0])).into()))),
        (
            "tsquery_rewrite",
            s(|a, _| rewrite::rewrite(query(&a[0]), query(&a[1]), query(&a[2]))?.into_value()),
        ),
        ("ts_rank_wttf", s(ts_rank::<true, true, false>)),
        ("ts_rank_wtt", s(ts_rank::<true, false, false>)),
        ("ts_rank_ttf", s(ts_rank::<false, true, false>)),
        ("ts_rank_tt", s(ts_rank::<false, false, false>)),
        ("ts_rankcd_wttf", s(ts_rank::<true, true, true>)),
        ("ts_rankcd_wtt", s(ts_rank::<true, false, true>)),
        ("ts_rankcd_ttf", s(ts_rank::<false, true, true>)),
        ("ts_rankcd_tt", s(ts_rank::<false, false, true>)),
        ("ts_lexize", s(ts_lexize)),
        ("ts_debug_byid", Body::Set(|a, _| ts_debug(&mut config_of(&a[0])?, a[1].as_str()))),
        ("ts_debug", Body::Set(|a, cx| ts_debug(&mut Config::default(cx)?, a[0].as_str()))),
        (
            "ts_parse_byid",
            Body::Set(|a, _| parser_by_id(&a[0]).and_then(|()| ts_parse(a[1].as_str()))),
        ),
        (
            "ts_parse_byname",
            Body::Set(|a, _| parser_named(a[0].as_str()).and_then(|()| ts_parse(a[1].as_str()))),
        ),
        ("ts_token_type_byid", Body::Set(|a, _| parser_by_id(&a[0]).map(|()| token_types()))),
        (
            "ts_token_type_byname",
            Body::Set(|a, _| parser_named(a[0].as_str()).map(|()| token_types())),
        ),
    ];
    out.extend(comparisons! {
        "tsvector_lt" "tsquery_lt" is_lt;
        "tsvector_le" "tsquery_le" is_le;
        "tsvector_eq" "tsquery_eq" is_eq;
        "tsvector_ne" "tsquery_ne" is_ne;
        "tsvector_ge" "tsquery_ge" is_ge;
        "tsvector_gt" "tsquery_gt" is_gt;
    });
    out
}
