//! The index access methods that the house has.

/// An index access method. Its properties are [`Properties`]; what it does is
/// `access::index::IndexMethod`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AccessMethod {
    /// Keys in order.
    #[default]
    BTree,
    /// Equality, by hash codes.
    Hash,
    /// The parts that values consist of: elements, keys, words.
    Gin,
    /// A tree of keys that cover those below them.
    Gist,
    /// Such a tree for values whose space is parted.
    SpGist,
    /// Summaries of ranges of pages.
    Brin,
    /// A graph of vectors, of the extension `vector`.
    Hnsw,
    /// Vectors in lists, of the extension `vector`.
    IvfFlat,
    /// A few bits of each row, of the extension `bloom`.
    Bloom,
}

/// The capabilities of indexes of a method.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// Scans give rows in the order of the keys, and backwards.
    pub ordered: bool,
    /// UNIQUE, and with it constraints.
    pub unique: bool,
    /// Several key columns.
    pub multi_column: bool,
    /// INCLUDE.
    pub include: bool,
    /// Plain scans, row by row; every method makes bitmaps.
    pub plain_scan: bool,
    /// Values can be read back from the index.
    pub returns_values: bool,
    /// `= ANY (array)` in one scan.
    pub search_array: bool,
    /// `IS NULL` and `IS NOT NULL`.
    pub search_nulls: bool,
    /// CLUSTER can follow it.
    pub clusterable: bool,
    /// Rows that match are asked again whether they do: the index keeps less than their keys.
    pub lossy: bool,
    /// Exclusion constraints may rest on it.
    pub exclusion: bool,
    /// Rows come by distance (`ORDER BY column <-> value`).
    pub distance_ordered: bool,
}

impl AccessMethod {
    /// All of them.
    pub const ALL: [AccessMethod; 9] = [
        AccessMethod::BTree,
        AccessMethod::Hash,
        AccessMethod::Gin,
        AccessMethod::Gist,
        AccessMethod::SpGist,
        AccessMethod::Brin,
        AccessMethod::Hnsw,
        AccessMethod::IvfFlat,
        AccessMethod::Bloom,
    ];

    /// The name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            AccessMethod::BTree => "btree",
            AccessMethod::Hash => "hash",
            AccessMethod::Gin => "gin",
            AccessMethod::Gist => "gist",
            AccessMethod::SpGist => "spgist",
            AccessMethod::Brin => "brin",
            AccessMethod::Hnsw => "hnsw",
            AccessMethod::IvfFlat => "ivfflat",
            AccessMethod::Bloom => "bloom",
        }
    }

    /// Its row in `pg_am`.
    pub fn oid(self) -> u32 {
        match self {
            AccessMethod::BTree => 403,
            AccessMethod::Hash => 405,
            AccessMethod::Gin => 2742,
            AccessMethod::Gist => 783,
            AccessMethod::SpGist => 4000,
            AccessMethod::Brin => 3580,
            // Of PostgreSQL's range for what is not its own.
            AccessMethod::Hnsw => 8301,
            AccessMethod::IvfFlat => 8302,
            AccessMethod::Bloom => 8303,
        }
    }

    /// The name in sentences.
    pub fn title(self) -> &'static str {
        match self {
            AccessMethod::BTree => "B-tree",
            AccessMethod::Hash => "hash",
            AccessMethod::Gin => "GIN",
            AccessMethod::Gist => "GiST",
            AccessMethod::SpGist => "SP-GiST",
            AccessMethod::Brin => "BRIN",
            AccessMethod::Hnsw => "HNSW",
            AccessMethod::IvfFlat => "IVFFlat",
            AccessMethod::Bloom => "bloom",
        }
    }

    /// The extension with which it comes; None: it is always there.
    pub fn extension(self) -> Option<&'static str> {
        match self {
            AccessMethod::Hnsw | AccessMethod::IvfFlat => Some("vector"),
            AccessMethod::Bloom => Some("bloom"),
            _ => None,
        }
    }

    /// Whether it finds vectors that are near.
    pub fn is_of_vectors(self) -> bool {
        matches!(self, AccessMethod::Hnsw | AccessMethod::IvfFlat)
    }

    /// Whether it is a tree of keys that cover each other.
    pub fn is_covering(self) -> bool {
        matches!(self, AccessMethod::Gist | AccessMethod::SpGist)
    }

    /// The method with a name.
    pub fn named(name: &str) -> Option<AccessMethod> {
        AccessMethod::ALL.into_iter().find(|m| m.name() == name)
    }

    /// The method with a row in `pg_am`.
    pub fn of_oid(oid: u32) -> Option<AccessMethod> {
        AccessMethod::ALL.into_iter().find(|m| m.oid() == oid)
    }

    /// Whether it is the B-tree.
    pub fn is_btree(self) -> bool {
        self == AccessMethod::BTree
    }

    /// The method's capabilities.
    pub fn properties(self) -> &'static Properties {
        match self {
            AccessMethod::BTree => &Properties {
                ordered: true,
                unique: true,
                multi_column: true,
                include: true,
                plain_scan: true,
                returns_values: true,
                search_array: true,
                search_nulls: true,
                clusterable: true,
                lossy: false,
                exclusion: true,
                distance_ordered: false,
            },
            AccessMethod::Hash => &Properties {
                ordered: false,
                unique: false,
                multi_column: false,
                include: false,
                plain_scan: true,
                returns_values: false,
                search_array: false,
                search_nulls: false,
                clusterable: false,
                lossy: true,
                exclusion: true,
                distance_ordered: false,
            },
            AccessMethod::Gin => &Properties {
                ordered: false,
                unique: false,
                multi_column: true,
                include: false,
                plain_scan: false,
                returns_values: false,
                search_array: false,
                search_nulls: false,
                clusterable: false,
                lossy: true,
                exclusion: false,
                distance_ordered: false,
            },
            AccessMethod::Gist => &Properties {
                ordered: false,
                unique: false,
                multi_column: true,
                include: true,
                plain_scan: true,
                returns_values: true,
                search_array: false,
                search_nulls: true,
                clusterable: true,
                lossy: true,
                exclusion: true,
                distance_ordered: true,
            },
            AccessMethod::SpGist => &Properties {
                ordered: false,
                unique: false,
                multi_column: false,
                include: true,
                plain_scan: true,
                returns_values: true,
                search_array: false,
                search_nulls: true,
                clusterable: false,
                lossy: true,
                exclusion: true,
                distance_ordered: true,
            },
            AccessMethod::Brin => &Properties {
                ordered: false,
                unique: false,
                multi_column: true,
                include: false,
                plain_scan: false,
                returns_values: false,
                search_array: false,
                search_nulls: true,
                clusterable: false,
                lossy: true,
                exclusion: false,
                distance_ordered: false,
            },
            AccessMethod::Hnsw | AccessMethod::IvfFlat => &Properties {
                ordered: false,
                unique: false,
                multi_column: false,
                include: false,
                plain_scan: true,
                returns_values: false,
                search_array: false,
                search_nulls: false,
                clusterable: false,
                lossy: false,
                exclusion: false,
                distance_ordered: true,
            },
            AccessMethod::Bloom => &Properties {
                ordered: false,
                unique: false,
                multi_column: true,
                include: false,
                plain_scan: false,
                returns_values: false,
                search_array: false,
                search_nulls: false,
                clusterable: false,
                lossy: true,
                exclusion: false,
                distance_ordered: false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_oids_lead_back_to_their_method() {
        for method in AccessMethod::ALL {
            assert_eq!(AccessMethod::named(method.name()), Some(method));
            assert_eq!(AccessMethod::of_oid(method.oid()), Some(method));
        }
        assert_eq!(AccessMethod::named("heap"), None);
    }
}
