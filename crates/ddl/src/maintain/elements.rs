//! The most common elements of arrays and lexemes of documents, in a sample.
//!
//! They are counted with a memory that does not grow with the sample (lossy counting: Manku and Motwani, "Approximate
//! Frequency Counts over Data Streams", VLDB 2002), with PostgreSQL's parameters: after each `width` elements those are
//! forgotten that cannot be among the most common ones, and no count is off by more than the elements seen, divided by
//! `width`.

use std::cmp::Ordering;
use std::collections::HashMap;

use base::{Oid, Result};
use catalog::object::Elements;
use types::{Datum, FormatContext};

/// Elements that are kept for each unit of the statistics target.
const ELEMENTS_A_TARGET: usize = 10;
/// Longer elements are not counted, so that counts and statistics stay small.
const ELEMENT_MAX: usize = 256;

/// Counts of elements; those that were forgotten in between are missing some.
struct Counts {
    /// With the most that may be missing.
    of: HashMap<String, (usize, usize)>,
    /// Elements between two times of forgetting.
    width: usize,
    seen: usize,
}

impl Counts {
    fn add(&mut self, element: &str) {
        let missing = self.seen / self.width;
        self.seen += 1;
        match self.of.get_mut(element) {
            Some((count, _)) => *count += 1,
            None => {
                self.of.insert(element.to_owned(), (1, missing));
            }
        }
        if self.seen.is_multiple_of(self.width) {
            let least = self.seen / self.width;
            self.of.retain(|_, (count, missing)| *count + *missing > least);
        }
    }

    /// The most common ones, as many as are wanted, with their counts; the most common first.
    fn finish(self, wanted: usize) -> Vec<(String, usize)> {
        let least = 9 * self.seen / self.width;
        let of = self.of.into_iter().map(|(element, (count, _))| (element, count));
        let mut common: Vec<(String, usize)> = of.filter(|(_, count)| *count > least).collect();
        common.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        common.truncate(wanted);
        common
    }
}

/// The elements of these values, none of which is NULL.
pub(super) fn of_values(
    values: &[(usize, &Datum)],
    target: usize,
    format: &FormatContext,
) -> Result<Elements> {
    let wanted = target * ELEMENTS_A_TARGET;
    let width = (wanted + 10) * 1000 / 7;
    let mut counts = Counts { of: HashMap::new(), width, seen: 0 };
    let (mut nulls, mut element) = (None, Oid::INVALID);
    for (_, value) in values {
        sched::check_interrupts()?;
        match value {
            Datum::Array(array) => {
                element = array.element;
                let mut items: Vec<&Datum> = array.items.iter().collect();
                items.sort_by(|a, b| types::io::compare(a, b));
                items.dedup_by(|a, b| types::io::compare(a, b) == Ordering::Equal);
                let has_null = items.iter().any(|item| item.is_null());
                *nulls.get_or_insert(0) += usize::from(has_null);
                for item in items.into_iter().filter(|item| !item.is_null()) {
                    let text = types::io::to_text(element, item, format)?;
                    if text.len() <= ELEMENT_MAX {
                        counts.add(&text);
                    }
                }
            }
            Datum::Open(value) => match value.0.elements() {
                Some(elements) => {
                    elements.iter().filter(|e| e.len() <= ELEMENT_MAX).for_each(|e| counts.add(e));
                }
                None => return Ok(Elements::default()),
            },
            _ => return Ok(Elements::default()),
        }
    }
    let common = counts.finish(wanted);
    let share = |count: usize| count as f64 / values.len().max(1) as f64;
    let mut elements = Elements {
        least: common.last().map_or(0.0, |(_, count)| share(*count)),
        most: common.first().map_or(0.0, |(_, count)| share(*count)),
        null: nulls.map(share),
        common: common.into_iter().map(|(text, count)| (text, share(count))).collect(),
    };
    match nulls {
        Some(_) => {
            let value = |text: &str| types::io::input(element, -1, text, format).ok();
            let mut ordered: Vec<(Option<Datum>, (String, f64))> =
                elements.common.into_iter().map(|e| (value(&e.0), e)).collect();
            ordered.sort_by(|(a, _), (b, _)| match (a, b) {
                (Some(a), Some(b)) => types::io::compare(a, b),
                (a, b) => a.is_some().cmp(&b.is_some()),
            });
            elements.common = ordered.into_iter().map(|(_, element)| element).collect();
        }
        None => elements.common.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then(a.cmp(b))),
    }
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_elements_are_forgotten_and_common_ones_counted() {
        let mut counts = Counts { of: HashMap::new(), width: 100, seen: 0 };
        for n in 0..10_000 {
            counts.add(if n % 4 == 0 { "often".to_owned() } else { format!("once {n}") }.as_str());
        }
        assert!(counts.of.len() < 300, "{}", counts.of.len());
        assert_eq!(counts.finish(10), [("often".to_owned(), 2500)]);
    }

    #[test]
    fn arrays_count_once_for_an_element_and_nulls_apart() {
        let array = |items: &[Option<i32>]| {
            let items = items.iter().map(|i| i.map_or(Datum::Null, Datum::Int4)).collect();
            Datum::Array(std::sync::Arc::new(types::datum::Array::of(types::oids::INT4, items)))
        };
        let values = [array(&[Some(10), Some(9), Some(9)]), array(&[Some(9), None])];
        let values: Vec<(usize, &Datum)> = values.iter().enumerate().collect();
        let found =
            of_values(&values, 100, &FormatContext::default()).expect("integers have texts");
        assert_eq!(found.common, [("9".to_owned(), 1.0), ("10".to_owned(), 0.5)]);
        assert_eq!((found.least, found.most, found.null), (0.5, 1.0, Some(0.5)));
    }
}
