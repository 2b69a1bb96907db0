//! How ALTER TABLE says that a column is kept.

/// A change of the way that a column is kept.
#[derive(Clone, Debug)]
pub enum ColumnKeeping {
    /// SET STORAGE, as in `pg_attribute.attstorage`.
    Storage(char),
    /// SET COMPRESSION, as in `pg_attribute.attcompression`; None: the setting's.
    Compression(Option<char>),
    /// SET and RESET of parameters.
    Options {
        /// SET.
        set: Vec<(String, String)>,
        /// RESET.
        reset: Vec<String>,
    },
}
