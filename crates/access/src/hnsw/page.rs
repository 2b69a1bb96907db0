//! The cells of a graph.
//!
//! ```text
//! meta     | m | ef_construction | entry point (6) | its level |
//! element  | level | flags | rows | … | place of its links (6) | … | row (6) × 10 | vector |
//! links    | 0xff 0xff | place (6) × 2m, of layer 0 | place (6) × m, of layer 1 | … |      a place that isn't used is all zero
//! ```

use base::TupleId;

use crate::cells::{CELL_MAX, Cells, Place};

/// Kinds of pages.
pub(super) const KIND_META: u16 = 0x484D;
pub(super) const KIND_CELLS: u16 = 0x4843;

/// Rows of an element: those with the same vector.
pub(super) const ROWS: usize = 10;

const FLAGS: usize = 1;
const COUNT: usize = 2;
const LINKS: usize = 4;
const ROW: usize = 12;
/// Bytes before the vector.
pub(super) const HEAD: usize = ROW + ROWS * 6;
/// The longest vector.
pub(super) const VECTOR_MAX: usize = CELL_MAX - HEAD;

/// The first byte of links, which is no level.
const IS_LINKS: u8 = 0xff;
/// Bytes before the places.
const LINKS_HEAD: usize = 2;

/// Flag: no element any more, its cells may be used again.
const FREE: u8 = 1;

/// The parameters of an index, and where searches begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meta {
    pub m: usize,
    pub ef_construction: usize,
    /// [`Place::NOWHERE`]: there is no element.
    pub entry: Place,
    pub level: usize,
}

/// Where the entry point is in the meta cell.
pub(super) const META_ENTRY: usize = 4;

impl Meta {
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        out.extend_from_slice(&(self.m as u16).to_le_bytes());
        out.extend_from_slice(&(self.ef_construction as u16).to_le_bytes());
        out.extend_from_slice(&self.entry_bytes());
        out.resize(16, 0);
        out
    }

    pub fn entry_bytes(self) -> Vec<u8> {
        let mut out = self.entry.to_bytes().to_vec();
        out.push(self.level as u8);
        out
    }

    pub fn read(cell: &[u8]) -> Option<Meta> {
        let u16_at = |at: usize| Some(u16::from_le_bytes([*cell.get(at)?, *cell.get(at + 1)?]));
        let place = cell.get(META_ENTRY..)?.first_chunk()?;
        let meta = Meta {
            m: u16_at(0)?.into(),
            ef_construction: u16_at(2)?.into(),
            entry: Place::from_bytes(*place),
            level: usize::from(*cell.get(META_ENTRY + Place::BYTES)?),
        };
        (meta.m >= 2).then_some(meta)
    }
}

/// Neighbours that an element may have on a layer.
pub(super) fn width(m: usize, layer: usize) -> usize {
    if layer == 0 { 2 * m } else { m }
}

/// Where a layer's neighbours begin in the cell of the links.
pub(super) fn begin(m: usize, layer: usize) -> usize {
    let places = if layer == 0 { 0 } else { (layer + 1) * m };
    LINKS_HEAD + places * Place::BYTES
}

/// Bytes of the links of an element.
pub(super) fn links_len(m: usize, level: usize) -> usize {
    LINKS_HEAD + (level + 2) * m * Place::BYTES
}

/// The highest level whose links fit a cell.
pub(super) fn level_max(m: usize) -> usize {
    ((CELL_MAX - LINKS_HEAD) / (m * Place::BYTES) - 2).min(60)
}

/// An element's cell, to be read.
#[derive(Clone, Copy)]
pub(super) struct Element<'p>(pub &'p [u8]);

impl<'p> Element<'p> {
    /// Of a page's cell; None when it is no element's.
    pub fn of(cells: Cells<'p>, number: u16) -> Option<Element<'p>> {
        let cell = cells.cell(number.into())?;
        let fits = cell.len() > HEAD && cell[0] != IS_LINKS && cell[COUNT] <= ROWS as u8;
        (cells.kind() == KIND_CELLS && fits).then_some(Element(cell))
    }

    pub fn level(self) -> usize {
        self.0[0].into()
    }

    pub fn is_free(self) -> bool {
        self.0[FLAGS] & FREE != 0
    }

    pub fn links(self) -> Place {
        let bytes = &self.0[LINKS..LINKS + Place::BYTES];
        Place::from_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]])
    }

    pub fn count(self) -> usize {
        self.0[COUNT].into()
    }

    pub fn rows(self) -> impl Iterator<Item = TupleId> + 'p {
        let all = self.0[ROW..HEAD].as_chunks::<6>().0;
        all.iter().take(self.count()).map(|bytes| TupleId::from_bytes(*bytes))
    }

    pub fn vector(self) -> &'p [u8] {
        &self.0[HEAD..]
    }
}

/// The head of an element with these rows.
pub(super) fn head(level: usize, links: Place, rows: &[TupleId]) -> [u8; HEAD] {
    let mut out = [0; HEAD];
    out[0] = level as u8;
    out[LINKS..LINKS + Place::BYTES].copy_from_slice(&links.to_bytes());
    let (at, bytes) = rows_bytes(rows);
    out[at..].copy_from_slice(&bytes);
    out[COUNT] = rows.len().min(ROWS) as u8;
    out
}

/// Where an element's rows are in its cell, and the bytes of these.
fn rows_bytes(rows: &[TupleId]) -> (usize, [u8; ROWS * 6]) {
    let mut out = [0; ROWS * 6];
    for (to, row) in out.as_chunks_mut::<6>().0.iter_mut().zip(rows) {
        *to = row.to_bytes();
    }
    (ROW, out)
}

/// The changes by which an element has these rows: places in its cell, and bytes.
pub(super) fn with_rows(rows: &[TupleId]) -> [(usize, Vec<u8>); 2] {
    let (at, bytes) = rows_bytes(rows);
    [(at, bytes.to_vec()), (COUNT, vec![rows.len() as u8])]
}

/// The change by which an element's cells may be used again.
pub(super) const FREED: (usize, [u8; 1]) = (FLAGS, [FREE]);

/// The places of a layer among links, those that aren't used as well.
pub(super) fn slots(links: &[u8], m: usize, layer: usize) -> impl Iterator<Item = Place> + '_ {
    let from = begin(m, layer);
    let to = from + width(m, layer) * Place::BYTES;
    let bytes = links.get(from..to).unwrap_or_default();
    bytes.as_chunks::<{ Place::BYTES }>().0.iter().map(|b| Place::from_bytes(*b))
}

/// The neighbours of a layer among links.
pub(super) fn neighbors(links: &[u8], m: usize, layer: usize) -> impl Iterator<Item = Place> + '_ {
    slots(links, m, layer).filter(|place| *place != Place::NOWHERE)
}

/// The bytes of a layer with these neighbours.
pub(super) fn layer_bytes(m: usize, layer: usize, places: &[Place]) -> Vec<u8> {
    let mut out = Vec::with_capacity(width(m, layer) * Place::BYTES);
    places.iter().take(width(m, layer)).for_each(|place| out.extend(place.to_bytes()));
    out.resize(width(m, layer) * Place::BYTES, 0);
    out
}

/// Links in bytes, by layers.
pub(super) fn links_bytes(m: usize, level: usize, layers: &[Vec<Place>]) -> Vec<u8> {
    let mut out = vec![IS_LINKS; LINKS_HEAD];
    for layer in 0..=level {
        let places = layers.get(layer).map_or(&[][..], Vec::as_slice);
        out.extend(layer_bytes(m, layer, places));
    }
    out
}
