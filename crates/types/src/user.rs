//! Types that users make (enums, domains, composite types, the row types of tables), as the running
//! task knows them.
//!
//! This crate knows no catalog. Whoever runs statements gives its task a [`Directory`] once
//! ([`install`]); it answers from the view of the catalog that the statement has. So a type that
//! another transaction has not committed is not there, and one that was renamed has its new name.
//!
//! Values say by themselves all that storing, comparing and hashing needs:
//!
//! * an enum's value is its type and its label's rank. Ranks never change, so they can stand in rows and
//!   in index keys; the label's text is looked up when the value is printed;
//! * a domain's value is one of the type below. Who checks its constraints is the executor;
//! * a composite value is a record with its type's oid. Rows keep no names: [`shape`] has them.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{Oid, Result, err};

use crate::datum::{Datum, Shape, Text};
use crate::func::CastRow;
use crate::io::TypeIo;

/// The facts about a type that a user made.
#[derive(Clone, Debug)]
pub struct UserType {
    /// As of any type; the names are without their schema.
    pub io: TypeIo,
    /// The type's kind.
    pub kind: UserKind,
}

/// See [`UserType`].
#[derive(Clone, Debug)]
pub enum UserKind {
    /// Labels by rank.
    Enum(Vec<(u64, Text)>),
    /// A domain.
    Domain {
        /// The type below.
        base: Oid,
        /// Its typmod.
        typmod: i32,
    },
    /// A composite type.
    Composite {
        /// Its columns.
        shape: Arc<Shape>,
        /// Their typmods.
        typmods: Vec<i32>,
        /// Where each of them stands in a stored value, from 0: columns that were dropped leave gaps.
        places: Vec<u16>,
    },
    /// A range type.
    Range {
        /// The type of its bounds.
        subtype: Oid,
        /// The multirange type over it.
        multirange: Oid,
    },
    /// A multirange type.
    Multirange {
        /// The range type below it.
        range: Oid,
    },
    /// A base type whose input and output are a built-in type's.
    Base {
        /// The built-in type.
        form: Oid,
    },
    /// A type that is only announced: there are no values.
    Shell,
    /// An array over one of these.
    Array,
    /// A type whose values another crate makes.
    Open(crate::open::Class),
}

/// An object of text search.
#[derive(Clone, Debug, PartialEq)]
pub enum TextSearch {
    /// A configuration.
    Config {
        /// Its parser.
        parser: Oid,
        /// Types of tokens, each with the dictionaries that it goes through, in order.
        map: Vec<(i32, Vec<Oid>)>,
    },
    /// A dictionary.
    Dictionary {
        /// Its template.
        template: Oid,
        /// Its options, as they were written.
        options: Text,
    },
    /// A template of a user's.
    Template {
        /// The code behind it: a symbol, with its library's name in front if it is an extension's.
        code: Text,
    },
    /// A parser of a user's, which is the server's own under another name.
    Parser,
}

/// Where a task looks types up.
pub trait Directory: Send + Sync + 'static {
    /// The type with this oid.
    fn get(&self, ty: Oid) -> Option<Arc<UserType>>;
    /// Its name as `format_type` prints it: with its schema unless the search path finds it.
    fn name(&self, ty: Oid) -> Option<String>;
    /// The name behind an oid of `regclass` or one of its kin (`kind`).
    fn object_name(&self, _kind: Oid, _id: u32) -> Option<String> {
        None
    }
    /// The oid of what a value of `regclass` or one of its kin names.
    fn object_named(&self, _kind: Oid, _text: &str) -> Option<Result<u32>> {
        None
    }
    /// Whether a user made a parser of text search with this name.
    fn text_search_parser(&self, _name: &str) -> bool {
        false
    }
    /// A cast that a user made.
    fn cast(&self, _source: Oid, _target: Oid) -> Option<CastRow> {
        None
    }
    /// A configuration or a dictionary of text search (`kind`: regconfig or regdictionary).
    fn text_search(&self, _kind: Oid, _id: u32) -> Option<Arc<TextSearch>> {
        None
    }
    /// Tells the client something that is no error.
    fn notice(&self, _notice: base::Error) {}
    /// `quote_all_identifiers`: names are printed in quotes, whether they need them or not.
    fn quotes_all(&self) -> bool {
        false
    }
}

/// Users have made casts since the server started, or before. Most servers have none, and don't ask.
static CASTS: AtomicBool = AtomicBool::new(false);

/// To be called before a directory knows a cast.
pub fn some_casts() {
    CASTS.store(true, Ordering::Relaxed);
}

/// A cast that a user made.
pub fn cast(source: Oid, target: Oid) -> Option<CastRow> {
    match CASTS.load(Ordering::Relaxed) {
        true => with(|d| d.cast(source, target)),
        false => None,
    }
}

/// The type whose values have the form of this one's: the type below a domain, the built-in type that a
/// base type is made like.
pub fn form(ty: Oid) -> Oid {
    let ty = base_type(ty, -1).0;
    match get(ty).map(|user| user.kind.clone()) {
        Some(UserKind::Base { form }) => form,
        _ => ty,
    }
}

/// Whether a type is only announced.
pub fn is_shell(ty: Oid) -> bool {
    get(ty).is_some_and(|user| matches!(user.kind, UserKind::Shell))
}

/// Some session has turned `quote_all_identifiers` on since the server started. The others don't ask.
static QUOTING: AtomicBool = AtomicBool::new(false);

/// To be called before a directory says that it quotes all names.
pub fn some_quote_all() {
    QUOTING.store(true, Ordering::Relaxed);
}

/// Whether tasks have to be asked.
#[inline]
pub fn any_quotes_all() -> bool {
    QUOTING.load(Ordering::Relaxed)
}

/// Whether the running task prints all names in quotes.
pub fn quotes_all() -> bool {
    any_quotes_all() && with(|d| Some(d.quotes_all())).unwrap_or_default()
}

struct Holder(Arc<dyn Directory>);

/// Gives a task its directory, for good. A task that has one keeps it.
pub fn install(task: &sched::Task, directory: Arc<dyn Directory>) {
    let holder: Arc<dyn Any + Send + Sync> = Arc::new(Holder(directory));
    task.set_context(holder);
}

fn with<R>(f: impl FnOnce(&dyn Directory) -> Option<R>) -> Option<R> {
    sched::with_current(|task| f(&*task.context()?.downcast_ref::<Holder>()?.0))
}

/// Whether a type with this oid can only be one that a user made.
#[inline]
pub fn is_user(ty: Oid) -> bool {
    ty >= Oid::FIRST_USER
}

/// A user's type; None for the others and where there is no directory.
pub fn get(ty: Oid) -> Option<Arc<UserType>> {
    if is_user(ty) { with(|d| d.get(ty)) } else { None }
}

/// As `format_type` prints it.
pub(crate) fn name(ty: Oid) -> Option<String> {
    with(|d| d.name(ty))
}

/// The name that `regclass` or one of its kin shows for an oid; None where no catalog is at hand.
pub(crate) fn object_name(kind: Oid, id: u32) -> Option<String> {
    with(|d| d.object_name(kind, id))
}

/// The oid of an object by its name, for `regclass` and kin.
///
/// # Errors
/// The error of a name that isn't there; `0A000` where no catalog is at hand.
pub fn object_named(kind: Oid, text: &str) -> Result<u32> {
    let unknown =
        || base::Error::unsupported(format!("{} by name here", crate::io::format_type(kind, -1)));
    with(|d| d.object_named(kind, text)).ok_or_else(unknown)?
}

/// Whether a user made a parser of text search with this name, which may have a schema's in front.
pub fn text_search_parser(name: &str) -> bool {
    with(|d| Some(d.text_search_parser(name))).unwrap_or_default()
}

/// A configuration or a dictionary of text search.
pub fn text_search(kind: Oid, id: u32) -> Option<Arc<TextSearch>> {
    with(|d| d.text_search(kind, id))
}

/// Tells the client something that is no error; where there is no client, nobody.
pub fn notice(notice: base::Error) {
    with(|d| {
        d.notice(notice);
        Some(())
    });
}

/// The type below a domain, however many domains lie in between, and the typmod that they give it
/// (-1: none); other types are their own.
pub fn base_type(ty: Oid, typmod: i32) -> (Oid, i32) {
    let (mut ty, mut typmod) = (ty, typmod);
    while let Some(user) = get(ty) {
        let UserKind::Domain { base, typmod: inner } = user.kind else { break };
        ty = base;
        if typmod < 0 {
            typmod = inner;
        }
    }
    (ty, typmod)
}

/// The columns of a composite type, or of the one below a domain.
pub fn shape(ty: Oid) -> Option<Arc<Shape>> {
    match &get(base_type(ty, -1).0)?.kind {
        UserKind::Composite { shape, .. } => Some(shape.clone()),
        _ => None,
    }
}

/// Whether values of a type are, or have inside, values of domains, which must be checked.
pub fn has_domains(ty: Oid) -> bool {
    let Some(user) = get(ty) else { return false };
    match &user.kind {
        UserKind::Enum(_)
        | UserKind::Open(_)
        | UserKind::Range { .. }
        | UserKind::Multirange { .. }
        | UserKind::Base { .. }
        | UserKind::Shell => false,
        UserKind::Domain { .. } => true,
        UserKind::Composite { shape, .. } => shape.columns.iter().any(|(_, ty)| has_domains(*ty)),
        UserKind::Array => has_domains(user.io.element),
    }
}

/// Whether it is an enum.
pub fn is_enum(ty: Oid) -> bool {
    get(ty).is_some_and(|user| matches!(user.kind, UserKind::Enum(_)))
}

/// The labels of an enum, in order; none for other types.
pub fn labels(ty: Oid) -> Vec<(u64, Text)> {
    match get(base_type(ty, -1).0).map(|user| user.kind.clone()) {
        Some(UserKind::Enum(labels)) => labels,
        _ => Vec::new(),
    }
}

/// Begins a label that is written as its rank: a character that no label has.
const RANK: char = '\u{1}';

/// Writes a label as its rank ([`crate::FormatContext::labels_by_rank`]).
pub(crate) fn write_rank(rank: u64, out: &mut Vec<u8>) {
    out.push(RANK as u8);
    out.extend_from_slice(rank.to_string().as_bytes());
}

/// A stored expression's text with the labels of an enum in the place of their ranks.
pub fn with_labels(sql: &str, labels: &[(u64, Text)]) -> String {
    let mut parts = sql.split(RANK);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let rank = part[..digits].parse::<u64>().ok();
        match labels.iter().find(|(own, _)| Some(*own) == rank) {
            Some((_, label)) => out.push_str(&label.replace("'", "''")),
            None => out.push_str(&part[..digits]),
        }
        out.push_str(&part[digits..]);
    }
    out
}

/// Reads a label.
///
/// # Errors
/// `22P02`.
pub(crate) fn enum_input(user: &UserType, labels: &[(u64, Text)], text: &str) -> Result<Datum> {
    let rank = text.strip_prefix(RANK).and_then(|rank| rank.parse::<u64>().ok());
    match labels.iter().find(|(own, label)| label == text || Some(*own) == rank) {
        Some((rank, _)) => Ok(Datum::Enum(user.io.oid, *rank)),
        None => Err(err!(
            INVALID_TEXT_REPRESENTATION,
            "invalid input value for enum {}: \"{text}\"",
            crate::io::format_type(user.io.oid, -1)
        )),
    }
}

/// The text of an enum's value.
///
/// # Errors
/// Internal, when the type is not known to the task.
pub(crate) fn enum_text(ty: Oid, rank: u64) -> Result<Text> {
    let missing = || base::Error::internal(format!("enum {ty} has no value of rank {rank}"));
    let user = get(ty).ok_or_else(missing)?;
    let UserKind::Enum(labels) = &user.kind else { return Err(missing()) };
    let at = labels.binary_search_by_key(&rank, |(r, _)| *r).map_err(|_| missing())?;
    Ok(labels[at].1.clone())
}
