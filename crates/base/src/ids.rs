//! Identifiers. Each is a number of its own type, so that a log position can't be taken for a
//! transaction.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

number! {
    /// Names a catalog object. 0 is no object; ids from 16384 on belong to users, as in PostgreSQL.
    Oid(u32)
}
number! {
    /// A transaction. 64 bits: never wraps round. 0 is no transaction, 1 is the one that made the
    /// initial catalog (always committed), 3 is the first that a client can get.
    Xid(u64)
}
number! {
    /// A commit sequence number: the position of the commit's record in the log (the record's
    /// end). A snapshot is one such number: it sees every commit with `csn <= snapshot`.
    Csn(u64)
}
number! {
    /// A position in the write-ahead log, in bytes since its beginning.
    Lsn(u64)
}
number! {
    /// Names the files of one relation (table or index), like PostgreSQL's relfilenode; unique in
    /// the whole server, never reused (but see [`RelId::is_temporary`]).
    RelId(u32)
}

/// Ids with this bit belong to temporary objects. Those of temporary objects that are gone are given
/// out again.
pub const TEMPORARY: u32 = 1 << 30;

impl RelId {
    /// The catalog's own rows, without which nothing can be read.
    pub const CATALOG: RelId = RelId(1);

    /// Whether the relation is temporary: its pages are not logged, its files are gone after a
    /// restart.
    #[inline]
    pub fn is_temporary(self) -> bool {
        self.0 & TEMPORARY != 0
    }
}

impl Oid {
    /// No object.
    pub const INVALID: Oid = Oid(0);
    /// The first id that user objects get.
    pub const FIRST_USER: Oid = Oid(16384);

    /// Whether this is an object of one session's own, gone when the session ends.
    #[inline]
    pub fn is_temporary(self) -> bool {
        self.0 & TEMPORARY != 0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Xid {
    /// No transaction.
    pub const INVALID: Xid = Xid(0);
    /// The transaction of the initial catalog; committed for every snapshot.
    pub const BOOTSTRAP: Xid = Xid(1);
    /// The first id that a client's transaction can get.
    pub const FIRST: Xid = Xid(3);

    /// Whether this names a transaction at all.
    pub fn is_valid(self) -> bool {
        self.0 != 0
    }
}

impl Lsn {
    /// Before everything.
    pub const ZERO: Lsn = Lsn(0);
}

impl fmt::Display for Lsn {
    /// As PostgreSQL writes `pg_lsn`: two hexadecimal halves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 as u32)
    }
}

/// Which of a relation's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Fork {
    /// Rows or index entries.
    Main = 0,
    /// Free space map.
    Fsm = 1,
    /// Visibility map.
    Vm = 2,
}

/// One page of 8 KiB in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId {
    /// The relation's files.
    pub rel: RelId,
    /// Which of them.
    pub fork: Fork,
    /// Page number in the file, from 0.
    pub block: u32,
}

impl PageId {
    /// A page of the main fork.
    pub fn main(rel: RelId, block: u32) -> PageId {
        PageId { rel, fork: Fork::Main, block }
    }
}

/// Where a row version is: page of the main fork and line pointer (from 1). PostgreSQL's `ctid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TupleId {
    /// Page number.
    pub block: u32,
    /// Line pointer in the page, from 1; 0 is no row.
    pub offset: u16,
}

impl TupleId {
    /// No row.
    pub const INVALID: TupleId = TupleId { block: u32::MAX, offset: 0 };

    /// Six bytes that sort as the tuple id does.
    pub fn to_bytes(self) -> [u8; 6] {
        let (b, o) = (self.block.to_be_bytes(), self.offset.to_be_bytes());
        [b[0], b[1], b[2], b[3], o[0], o[1]]
    }

    /// The inverse of [`TupleId::to_bytes`].
    pub fn from_bytes(b: [u8; 6]) -> TupleId {
        TupleId {
            block: u32::from_be_bytes([b[0], b[1], b[2], b[3]]),
            offset: u16::from_be_bytes([b[4], b[5]]),
        }
    }
}

impl fmt::Display for TupleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.block, self.offset)
    }
}
