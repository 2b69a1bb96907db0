//! Matching as PostgreSQL's engine (Henry Spencer's) defines it: of all matches that begin leftmost the
//! longest one counts, or the shortest one if the pattern prefers that; parts that begin earlier in
//! the pattern choose before later ones, within what the whole allows. Back references and look-around, too.
//!
//! For each part and place the engine knows where a match from there can end ([`Matcher::ends`], kept as ranges), which
//! gives the whole match; then it takes the match apart from the outside in ([`Matcher::dissect`]), asking only for
//! what is known to fit. A back reference may end anywhere until it is taken apart, so only there
//! it goes back and tries the next whole.
//!
//! Time and memory grow with the product of the pattern's size and the square of the text's at worst; beyond
//! a limit the answer is an error, and each step can be interrupted. Recursion is as deep as the pattern has parts that
//! may end in several places (`54001`); letters that follow each other are one part.
//! The `regex` crate answers where it gives the same ([`super`]).

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use base::Result;

use super::parse::{Assert, Class, Item, Node, Set, invalid};

/// Ranges kept for one text, at most.
const KEPT_MAX: usize = 4_000_000;

/// Disjoint ranges of places, both ends included, in order.
type Places = Rc<[(u32, u32)]>;

/// A part of the pattern in the arena.
#[derive(Debug)]
enum Part {
    Empty,
    Char(char),
    Set(Set),
    Assert(Assert),
    /// Letters, sets and assertions, one after the other: at most one place where they end.
    Run(Vec<u32>),
    Group(u32, Option<usize>),
    /// First one, then the other.
    Pair(u32, u32),
    Alternatives(Vec<u32>),
    Repeat {
        part: u32,
        min: u32,
        max: Option<u32>,
        greedy: bool,
    },
    Back(usize),
    Look {
        part: u32,
        behind: bool,
        negated: bool,
    },
}

/// A pattern made ready.
#[derive(Debug)]
pub(super) struct Program {
    parts: Vec<Part>,
    /// Whether a part prefers the longest match; None: it has no preference.
    greedy: Vec<Option<bool>>,
    /// Whether there is a group that captures or a back reference in a part.
    messy: Vec<bool>,
    root: u32,
    groups: usize,
    any_case: bool,
    has_back: bool,
}

impl Program {
    pub(super) fn new(node: &Node, groups: usize, any_case: bool) -> Program {
        let (parts, greedy, messy) = (Vec::new(), Vec::new(), Vec::new());
        let mut made = Program { parts, greedy, messy, root: 0, groups, any_case, has_back: false };
        made.root = made.add(node);
        made
    }

    fn put(&mut self, part: Part, greedy: Option<bool>, messy: bool) -> u32 {
        self.parts.push(part);
        self.greedy.push(greedy);
        self.messy.push(messy);
        self.parts.len() as u32 - 1
    }

    /// Adds a part; its nesting is bounded by the parser.
    fn add(&mut self, node: &Node) -> u32 {
        match node {
            Node::Empty => self.put(Part::Empty, None, false),
            Node::Char(c) => self.put(Part::Char(*c), None, false),
            Node::Set(set) => self.put(Part::Set(set.clone()), None, false),
            Node::Assert(assert) => self.put(Part::Assert(*assert), None, false),
            Node::Group(inner, number) => {
                let inner = self.add(inner);
                let (greedy, messy) = self.about(inner);
                self.put(Part::Group(inner, *number), greedy, messy || number.is_some())
            }
            Node::Concat(all) => {
                let ids = self.add_all(all);
                let last =
                    ids.last().copied().unwrap_or_else(|| self.put(Part::Empty, None, false));
                let earlier = &ids[..ids.len().saturating_sub(1)];
                earlier.iter().rfold(last, |rest, first| {
                    let (first_greedy, first_messy) = self.about(*first);
                    let (greedy, messy) = self.about(rest);
                    self.put(
                        Part::Pair(*first, rest),
                        first_greedy.or(greedy),
                        first_messy || messy,
                    )
                })
            }
            Node::Alternatives(all) => {
                let ids: Vec<u32> = all.iter().map(|n| self.add(n)).collect();
                let messy = ids.iter().any(|id| self.about(*id).1);
                self.put(Part::Alternatives(ids), Some(true), messy)
            }
            Node::Repeat { node, min, max, greedy, fixed } => {
                let part = self.add(node);
                let (inner, messy) = self.about(part);
                let preference = if *fixed { inner } else { Some(*greedy) };
                let repeat = Part::Repeat { part, min: *min, max: *max, greedy: *greedy };
                self.put(repeat, preference, messy)
            }
            Node::Back(n) => {
                self.has_back = true;
                self.put(Part::Back(*n), None, true)
            }
            Node::Look { node, behind, negated } => {
                let part = self.add(node);
                self.put(Part::Look { part, behind: *behind, negated: *negated }, None, false)
            }
        }
    }

    /// Adds what stands in a row, plain parts that are neighbours as one.
    fn add_all(&mut self, all: &[Node]) -> Vec<u32> {
        let mut ids: Vec<u32> = Vec::new();
        let mut run: Vec<u32> = Vec::new();
        for node in all {
            let id = self.add(node);
            if matches!(node, Node::Char(_) | Node::Set(_) | Node::Assert(_)) {
                run.push(id);
                continue;
            }
            self.end_run(&mut run, &mut ids);
            ids.push(id);
        }
        self.end_run(&mut run, &mut ids);
        ids
    }

    fn end_run(&mut self, run: &mut Vec<u32>, ids: &mut Vec<u32>) {
        match run.len() {
            0 => {}
            1 => ids.append(run),
            _ => ids.push(self.put(Part::Run(std::mem::take(run)), None, false)),
        }
    }

    fn about(&self, id: u32) -> (Option<bool>, bool) {
        (self.greedy[id as usize], self.messy[id as usize])
    }
}

/// Whether a class has a letter.
fn class_has(class: Class, c: char) -> bool {
    match class {
        Class::Alpha => c.is_alphabetic(),
        Class::Digit => c.is_ascii_digit(),
        Class::Alnum => c.is_alphabetic() || c.is_ascii_digit(),
        Class::Upper => c.is_uppercase(),
        Class::Lower => c.is_lowercase(),
        Class::Space => c.is_whitespace(),
        Class::Blank => c == ' ' || c == '\t',
        Class::Word => is_word(c),
        Class::Punct => c.is_ascii_punctuation(),
        Class::Cntrl => c.is_ascii_control(),
        Class::Graph => c.is_ascii_graphic(),
        Class::Print => c.is_ascii_graphic() || c == ' ',
        Class::Xdigit => c.is_ascii_hexdigit(),
        Class::Ascii => c.is_ascii(),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphabetic() || c.is_ascii_digit() || c == '_'
}

fn set_has(set: &Set, c: char) -> bool {
    let has = |item: &Item| match *item {
        Item::Range(low, high) => (low..=high).contains(&c),
        Item::Class(class, negated) => class_has(class, c) != negated,
    };
    set.items.iter().any(has)
}

fn other_cases(c: char) -> [char; 3] {
    let lower = c.to_lowercase().next().unwrap_or(c);
    [c, lower, c.to_uppercase().next().unwrap_or(c)]
}

/// Where a match and its groups begin and end, as places between letters.
pub(super) type Spans = Vec<Option<(u32, u32)>>;

/// One text under a pattern.
pub(super) struct Matcher<'p> {
    program: &'p Program,
    text: Vec<char>,
    known: HashMap<(u32, u32), Places>,
    /// For repeated sets: how far from each place all letters are in the set.
    runs: HashMap<u32, Rc<[u32]>>,
    kept: usize,
}

impl<'p> Matcher<'p> {
    pub(super) fn new(program: &'p Program, text: &str) -> Matcher<'p> {
        let text = text.chars().collect();
        Matcher { program, text, known: HashMap::new(), runs: HashMap::new(), kept: 0 }
    }

    /// The match that begins leftmost, from this place on; the whole first, then the groups.
    ///
    /// # Errors
    /// `2201B` when it would take too much memory.
    pub(super) fn find(&mut self, from: u32) -> Result<Option<Spans>> {
        for start in from..=self.text.len() as u32 {
            if let Some(found) = self.find_at(start)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The match that begins here.
    ///
    /// # Errors
    /// As [`Matcher::find`].
    pub(super) fn find_at(&mut self, start: u32) -> Result<Option<Spans>> {
        if self.kept > KEPT_MAX / 2 {
            // The knowledge of earlier places helps little here.
            self.known = HashMap::new();
            self.kept = 0;
        }
        let root = self.program.root;
        let ends = self.ends(root, start)?;
        let longest = self.program.greedy[root as usize] != Some(false);
        for end in places(&ends, u32::MAX, longest) {
            let mut spans: Spans = vec![None; self.program.groups + 1];
            if self.dissect(root, start, end, &mut spans)? {
                spans[0] = Some((start, end));
                return Ok(Some(spans));
            }
            if !self.program.has_back {
                break;
            }
        }
        Ok(None)
    }

    fn fits(&self, part: &Part, at: u32) -> bool {
        let Some(&c) = self.text.get(at as usize) else { return false };
        let cases = if self.program.any_case { other_cases(c) } else { [c; 3] };
        match part {
            Part::Char(want) if self.program.any_case => {
                other_cases(*want).iter().any(|w| cases.contains(w))
            }
            Part::Char(want) => *want == c,
            Part::Set(set) => cases.iter().any(|c| set_has(set, *c)) != set.negated,
            _ => false,
        }
    }

    fn holds(&self, assert: Assert, at: u32) -> bool {
        let at = at as usize;
        let before = at.checked_sub(1).map(|i| self.text[i]);
        let after = self.text.get(at).copied();
        let word = |c: Option<char>| c.is_some_and(is_word);
        match assert {
            Assert::TextStart => before.is_none(),
            Assert::TextEnd => after.is_none(),
            Assert::LineStart => before.is_none_or(|c| c == '\n'),
            Assert::LineEnd => after.is_none_or(|c| c == '\n'),
            Assert::WordStart => !word(before) && word(after),
            Assert::WordEnd => word(before) && !word(after),
            Assert::WordEdge => word(before) != word(after),
            Assert::NotWordEdge => word(before) == word(after),
        }
    }

    /// Where a match of a part from a place on can end.
    fn ends(&mut self, id: u32, from: u32) -> Result<Places> {
        sched::check_interrupts()?;
        sched::check_stack()?;
        if let Some(known) = self.known.get(&(id, from)) {
            return Ok(known.clone());
        }
        let program = self.program;
        let found: Places = match &program.parts[id as usize] {
            Part::Empty => one(from),
            part @ (Part::Char(_) | Part::Set(_)) => {
                return Ok(if self.fits(part, from) { one(from + 1) } else { none() });
            }
            Part::Assert(assert) => {
                return Ok(if self.holds(*assert, from) { one(from) } else { none() });
            }
            Part::Run(parts) => {
                let end =
                    parts.iter().try_fold(from, |at, id| match &program.parts[*id as usize] {
                        Part::Assert(assert) => self.holds(*assert, at).then_some(at),
                        part => self.fits(part, at).then_some(at + 1),
                    });
                return Ok(end.map_or_else(none, one));
            }
            Part::Group(inner, _) => return self.ends(*inner, from),
            Part::Pair(first, rest) => {
                let mut out = Vec::new();
                for at in places(&self.ends(*first, from)?, u32::MAX, false) {
                    out.extend_from_slice(&self.ends(*rest, at)?);
                }
                merged(out)
            }
            Part::Alternatives(all) => {
                let mut out = Vec::new();
                for part in all {
                    out.extend_from_slice(&self.ends(*part, from)?);
                }
                merged(out)
            }
            Part::Repeat { part, min, max, .. } => self.repeat_ends(*part, *min, *max, from)?,
            Part::Back(_) => Rc::new([(from, self.text.len() as u32)]),
            Part::Look { part, behind, negated } => {
                let found = if *behind {
                    let mut any = false;
                    for start in (0..=from).rev() {
                        any = any || contains(&self.ends(*part, start)?, from);
                    }
                    any
                } else {
                    !self.ends(*part, from)?.is_empty()
                };
                if found != *negated { one(from) } else { none() }
            }
        };
        self.kept += found.len() + 1;
        if self.kept > KEPT_MAX {
            return Err(invalid("regular expression is too complex"));
        }
        self.known.insert((id, from), found.clone());
        Ok(found)
    }

    fn repeat_ends(&mut self, part: u32, min: u32, max: Option<u32>, from: u32) -> Result<Places> {
        let program = self.program;
        if matches!(program.parts[part as usize], Part::Char(_) | Part::Set(_)) {
            let run = self.run(part)?[from as usize];
            let most = max.map_or(run, |max| run.min(from.saturating_add(max)));
            return Ok(if from + min <= most { Rc::new([(from + min, most)]) } else { none() });
        }
        let mut now = one(from);
        let mut all = if min == 0 { vec![(from, from)] } else { Vec::new() };
        let mut count = 0;
        while !now.is_empty() && max.is_none_or(|max| count < max) {
            count += 1;
            let mut next = Vec::new();
            for at in places(&now, u32::MAX, false) {
                next.extend_from_slice(&self.ends(part, at)?);
            }
            now = merged(next);
            if count >= min {
                let before = merged(std::mem::take(&mut all));
                // Only from new places on something new can be reached.
                let new: Vec<u32> =
                    places(&now, u32::MAX, false).filter(|p| !contains(&before, *p)).collect();
                all = before.to_vec();
                all.extend(new.iter().map(|p| (*p, *p)));
                if max.is_none() {
                    now = merged(new.iter().map(|p| (*p, *p)).collect());
                }
            }
        }
        Ok(merged(all))
    }

    /// For each place the end of the run of letters of a set that begins there.
    fn run(&mut self, id: u32) -> Result<Rc<[u32]>> {
        if let Some(run) = self.runs.get(&id) {
            return Ok(run.clone());
        }
        let program = self.program;
        let len = self.text.len();
        let mut run = vec![len as u32; len + 1];
        for at in (0..len).rev() {
            sched::check_interrupts()?;
            let fits = self.fits(&program.parts[id as usize], at as u32);
            run[at] = if fits { run[at + 1] } else { at as u32 };
        }
        let run: Rc<[u32]> = run.into();
        self.runs.insert(id, run.clone());
        Ok(run)
    }

    /// Finds the groups of a part that matches from one place to another. False only on account of
    /// back references.
    fn dissect(&mut self, id: u32, from: u32, to: u32, spans: &mut Spans) -> Result<bool> {
        sched::check_interrupts()?;
        sched::check_stack()?;
        let program = self.program;
        if !program.messy[id as usize] {
            return Ok(true);
        }
        match &program.parts[id as usize] {
            Part::Group(inner, number) => {
                let done = self.dissect(*inner, from, to, spans)?;
                if let (Some(number), true) = (number, done) {
                    spans[*number] = Some((from, to));
                }
                Ok(done)
            }
            Part::Pair(first, rest) => self.dissect_pair(*first, *rest, (from, to), spans),
            Part::Alternatives(all) => {
                for part in all {
                    if contains(&self.ends(*part, from)?, to) {
                        let before = spans.clone();
                        if self.dissect(*part, from, to, spans)? {
                            return Ok(true);
                        }
                        *spans = before;
                    }
                }
                Ok(false)
            }
            Part::Repeat { .. } => self.dissect_repeat(id, from, to, spans),
            Part::Back(number) => Ok(self.repeats_group(*number, from, to, spans)),
            _ => Ok(true),
        }
    }

    fn repeats_group(&self, number: usize, from: u32, to: u32, spans: &Spans) -> bool {
        let Some((start, end)) = spans[number] else { return false };
        let (group, here) =
            (&self.text[start as usize..end as usize], &self.text[from as usize..to as usize]);
        let same = |(a, b): (&char, &char)| {
            a == b
                || self.program.any_case
                    && other_cases(*a).iter().any(|c| other_cases(*b).contains(c))
        };
        group.len() == here.len() && group.iter().zip(here).all(same)
    }

    fn dissect_pair(
        &mut self,
        first: u32,
        rest: u32,
        (from, to): (u32, u32),
        spans: &mut Spans,
    ) -> Result<bool> {
        let program = self.program;
        let longest = program.greedy[first as usize] != Some(false);
        let known = match &program.parts[first as usize] {
            Part::Back(number) => match spans[*number] {
                // Only one length is possible.
                Some((start, end)) => Some(from + (end - start)),
                None => return Ok(false),
            },
            _ => None,
        };
        let ends = match known {
            Some(at) => one(at),
            None => self.ends(first, from)?,
        };
        for middle in places(&ends, to, longest) {
            if !contains(&self.ends(rest, middle)?, to) {
                continue;
            }
            let before = spans.clone();
            if self.dissect(first, from, middle, spans)? && self.dissect(rest, middle, to, spans)? {
                return Ok(true);
            }
            *spans = before;
        }
        Ok(false)
    }

    /// The turns of a repetition: where each ends, found with a stack of the choices left; then the last
    /// turn's groups (each turn forgets those of the one before).
    fn dissect_repeat(&mut self, id: u32, from: u32, to: u32, spans: &mut Spans) -> Result<bool> {
        let program = self.program;
        let Part::Repeat { part, min, max, greedy } = program.parts[id as usize] else {
            return Ok(false);
        };
        if from == to && min == 0 {
            return Ok(true);
        }
        if min > 0 && !program.has_back {
            // As x{m-1,n-1}x: what goes before the last turn captures nothing, and chooses first.
            let before = self.repeat_ends(part, min - 1, max.map(|max| max - 1), from)?;
            for middle in places(&before, to, greedy) {
                if contains(&self.ends(part, middle)?, to) {
                    return self.dissect(part, middle, to, spans);
                }
            }
            return Ok(false);
        }
        let before = spans.clone();
        let mut failed: HashSet<(u32, u32)> = HashSet::new();
        // Where each turn begins, and the ends that it may still try.
        let mut turns: Vec<(u32, Vec<u32>)> =
            vec![(from, self.turns_from(part, from, to, greedy)?)];
        while let Some((_, choices)) = turns.last_mut() {
            sched::check_interrupts()?;
            let Some(end) = choices.pop() else {
                if let Some((start, _)) = turns.pop() {
                    failed.insert((start, (turns.len() as u32).min(min)));
                }
                continue;
            };
            let count = turns.len() as u32;
            if end == to {
                // Turns that are still wanted match nothing.
                let enough = count >= min || contains(&self.ends(part, to)?, to);
                if enough {
                    let starts: Vec<u32> = turns.iter().map(|t| t.0).chain([to]).collect();
                    if self.dissect_turns(part, &starts, spans)? {
                        return Ok(true);
                    }
                    *spans = before.clone();
                }
                continue;
            }
            if max.is_none_or(|max| count < max) && !failed.contains(&(end, count.min(min))) {
                let next = self.turns_from(part, end, to, greedy)?;
                turns.push((end, next));
            }
        }
        Ok(false)
    }

    /// Ends of a turn, the preferred one last.
    fn turns_from(&mut self, part: u32, from: u32, to: u32, greedy: bool) -> Result<Vec<u32>> {
        let ends = self.ends(part, from)?;
        // A turn that matches nothing brings nothing forward.
        Ok(places(&ends, to, !greedy).filter(|end| *end > from || from == to).collect())
    }

    fn dissect_turns(&mut self, part: u32, starts: &[u32], spans: &mut Spans) -> Result<bool> {
        let turns: Vec<(u32, u32)> = starts.windows(2).map(|w| (w[0], w[1])).collect();
        // Without back references no turn can fail, and only the last one leaves its groups.
        let needed = if self.program.has_back { &turns[..] } else { &turns[turns.len() - 1..] };
        let outside = spans.clone();
        for (from, to) in needed {
            spans.clone_from(&outside);
            if !self.dissect(part, *from, *to, spans)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn one(at: u32) -> Places {
    Rc::new([(at, at)])
}

fn none() -> Places {
    Rc::new([])
}

/// Ranges in order, those that touch joined.
fn merged(mut ranges: Vec<(u32, u32)>) -> Places {
    ranges.sort_unstable();
    let mut out: Vec<(u32, u32)> = Vec::with_capacity(ranges.len().min(8));
    for (low, high) in ranges {
        match out.last_mut() {
            Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
            _ => out.push((low, high)),
        }
    }
    out.into()
}

fn contains(ranges: &Places, at: u32) -> bool {
    let after = ranges.partition_point(|(low, _)| *low <= at);
    after > 0 && ranges[after - 1].1 >= at
}

/// All places up to one, the first or the last one first.
fn places(ranges: &Places, most: u32, descending: bool) -> Box<dyn Iterator<Item = u32>> {
    let (ranges, last) = (ranges.clone(), ranges.len());
    let range = move |n: usize| {
        let (low, high) = ranges[n];
        low..high.min(most).saturating_add(1).max(low)
    };
    if descending {
        Box::new((0..last).rev().flat_map(move |n| range(n).rev()))
    } else {
        Box::new((0..last).flat_map(range))
    }
}
