//! A tree made flat: steps that jump forward only.

use wire::Depth;

use super::facts::{Facts, Has, Load};
use super::parse::{Test, Tree};
use super::values::Range;

/// A step, by number; each leads only to steps of lower numbers, so a run ends.
type Label = u16;
const YES: Label = Label::MAX;
const NO: Label = Label::MAX - 1;

/// What a value is held against.
#[derive(Clone, Debug)]
enum Set {
    /// From a number on, so many more.
    One { first: u64, more: u64 },
    /// Ranges in order.
    Some(Box<[(u64, u64)]>),
    /// The same of 128 bits.
    Wide(Box<[Range]>),
}

#[derive(Clone, Debug)]
struct Step {
    load: Load,
    needs: Has,
    set: Set,
    /// Where to go when the value is in the set,
    inside: Label,
    /// when it is not,
    outside: Label,
    /// and when the packet does not have the field.
    absent: Label,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(super) struct Program {
    steps: Vec<Step>,
    start: Label,
    /// What the steps need between them, and how deep that is.
    pub wants: Has,
    pub depth: Depth,
}

impl Program {
    pub fn new(tree: &Tree) -> Self {
        let mut program = Self { steps: Vec::new(), start: NO, wants: Has::NOTHING, depth: Depth::Link };
        program.start = program.add(tree, YES, NO);
        program.depth = program.wants.depth();
        program
    }

    /// Steps for `tree` that end at `yes` or `no`; returns where they begin.
    fn add(&mut self, tree: &Tree, yes: Label, no: Label) -> Label {
        match tree {
            Tree::Test(test) => self.add_test(test, yes, no),
            Tree::Not(inner) => self.add(inner, no, yes),
            Tree::And(parts) => parts.iter().rev().fold(yes, |then, part| self.add(part, then, no)),
            Tree::Or(parts) => parts.iter().rev().fold(no, |otherwise, part| self.add(part, yes, otherwise)),
        }
    }

    fn add_test(&mut self, test: &Test, yes: Label, no: Label) -> Label {
        self.wants = self.wants.and(test.needs);
        let (found, end) = if test.outside { (no, yes) } else { (yes, no) };
        // Of a field that means either of two, one inside is enough to be found.
        test.loads.iter().rev().fold(end, |next, &load| {
            let set = Set::new(load.width, &test.ranges);
            self.steps.push(Step { load, needs: test.needs, set, inside: found, outside: next, absent: no });
            (self.steps.len() - 1) as Label
        })
    }

    /// Whether the packet is one of those asked for.
    #[inline]
    pub fn run(&self, facts: &Facts<'_>) -> bool {
        let mut at = self.start;
        while let Some(step) = self.steps.get(usize::from(at)) {
            at = step.next(facts);
        }
        at == YES
    }
}

impl Step {
    #[inline]
    fn next(&self, facts: &Facts<'_>) -> Label {
        let inside = if facts.has.all(self.needs) { self.set.holds(facts, self.load) } else { None };
        match inside {
            Some(true) => self.inside,
            Some(false) => self.outside,
            None => self.absent,
        }
    }
}

impl Set {
    fn new(width: u8, ranges: &[Range]) -> Self {
        if width > 8 {
            return Self::Wide(ranges.into());
        }
        let narrow = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
        let narrow: Box<[_]> = ranges.iter().map(|r| (narrow(r.0), narrow(r.1))).collect();
        match *narrow {
            [(first, last)] => Self::One { first, more: last - first },
            _ => Self::Some(narrow),
        }
    }
    /// Whether the field's value is in it; `None` without a value.
    #[inline]
    fn holds(&self, facts: &Facts<'_>, load: Load) -> Option<bool> {
        Some(match self {
            Self::One { first, more } => facts.read(load)?.wrapping_sub(*first) <= *more,
            Self::Some(ranges) => within(ranges, facts.read(load)?),
            Self::Wide(ranges) => within(ranges, facts.read_wide(load)?),
        })
    }
}

/// Whether `value` is in one of `ranges`, which are in order.
#[inline]
fn within<T: Ord>(ranges: &[(T, T)], value: T) -> bool {
    let at = ranges.partition_point(|r| r.1 < value);
    ranges.get(at).is_some_and(|r| r.0 <= value)
}
