//! "Perhaps you meant …": which column a misspelt name may have meant.
//!
//! As PostgreSQL does it: the distance is Levenshtein's, of the column's name plus that of the
//! table's alias where one was written; at most [`FARTHEST`], and at most half of the name may be
//! wrong. One nearest column is named, two equally near ones are named both, more are not.

use base::Error;

use super::Scope;

/// Greatest distance of a suggestion.
const FARTHEST: usize = 3;

/// The nearest columns so far.
struct Nearest<'s> {
    distance: usize,
    found: Vec<(&'s str, &'s str)>,
}

impl<'s> Nearest<'s> {
    fn offer(&mut self, distance: usize, table: &'s str, column: &'s str) {
        if distance < self.distance {
            self.distance = distance;
            self.found = vec![(table, column)];
        } else if distance == self.distance && distance <= FARTHEST {
            if self.found.len() < 2 {
                self.found.push((table, column));
            } else {
                // Too many are as near as this: only a nearer one will do.
                self.found.clear();
                self.distance = distance.saturating_sub(1);
            }
        }
    }
}

/// Adds the hint to an error about a column that isn't there.
pub(crate) fn hint(scope: &Scope<'_>, alias: Option<&str>, name: &str, error: Error) -> Error {
    let mut nearest = Nearest { distance: FARTHEST + 1, found: Vec::new() };
    let levels = std::iter::successors(Some(scope), |s| s.parent);
    for item in levels.flat_map(|s| &s.items) {
        let Some(table) = item.name.as_deref() else { continue };
        let apart = alias.map_or(0, |alias| distance(alias, table));
        if apart > FARTHEST + 1 {
            continue;
        }
        for column in &item.columns {
            if column.name == name && apart == 0 && alias.is_none() {
                return error.hint(format!(
                    "There is a column named \"{name}\" in table \"{table}\", but it cannot be referenced from this part of the query."
                ));
            }
            let own = distance(&column.name, name);
            if own <= name.len() / 2 && apart <= nearest.distance {
                nearest.offer(own + apart, table, &column.name);
            }
        }
    }
    match nearest.found.as_slice() {
        [(table, column)] => error.hint(format!(
            "Perhaps you meant to reference the column \"{table}.{column}\"."
        )),
        [(table, column), (other, second)] => error.hint(format!(
            "Perhaps you meant to reference the column \"{table}.{column}\" or the column \"{other}.{second}\"."
        )),
        _ => error,
    }
}

/// Insertions, deletions and changes of characters from one word to another (Levenshtein 1966; the
/// table of Wagner and Fischer 1974, row by row).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_edits() {
        assert_eq!(distance("salary", "salery"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }

    #[test]
    fn two_equally_near_columns_are_kept_and_three_are_dropped() {
        let mut nearest = Nearest { distance: FARTHEST + 1, found: Vec::new() };
        nearest.offer(2, "t", "a");
        nearest.offer(2, "t", "b");
        assert_eq!(nearest.found.len(), 2);
        nearest.offer(2, "t", "c");
        assert!(nearest.found.is_empty());
        nearest.offer(1, "t", "d");
        assert_eq!(nearest.found, [("t", "d")]);
    }
}
