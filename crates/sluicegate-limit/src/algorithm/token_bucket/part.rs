//! A part of a bucket: a token weighs as much more as the part is smaller. The debt drains as before, so words mean the
//! same in every part.

use super::TokenBucket;
use crate::earliest::{Earliest, StepResult};
use crate::exact::EXACT;
use crate::part::Part;
use crate::words::Words;

impl TokenBucket {
    /// A part of the bucket, which holds one token at least. `None` where that does not stay exact.
    #[inline]
    pub fn in_part(&self, part: Part) -> Option<Self> {
        let unit = part.weigh(self.unit)?;
        let (cap, free) = (self.cap.max(unit), self.free.max(unit));
        (cap < EXACT / 2 - self.drain).then_some(Self { unit, cap, free, ..*self })
    }

    /// The same, of a bucket of which a microsecond drains one.
    #[inline(always)]
    pub fn in_plain_part(&self, part: Part) -> Option<PlainPart> {
        let unit = part.weigh(self.unit)?;
        let cap = self.cap.max(unit);
        (cap < EXACT / 2 - 1).then_some(PlainPart { unit, cap })
    }
}

/// A part of a bucket of which a microsecond drains one: two numbers, which stay in registers.
#[derive(Debug, Clone, Copy)]
pub struct PlainPart {
    unit: u64,
    cap: u64,
}

impl PlainPart {
    /// [`TokenBucket::step`].
    #[inline(always)]
    pub fn step(&self, [last, debt]: Words, now: u64, cost: u64) -> StepResult {
        let Some(weight) = cost.checked_mul(self.unit).filter(|weight| *weight <= self.cap) else {
            return StepResult::Refuse(Earliest::Never);
        };
        let after = debt.saturating_sub(now.saturating_sub(last)) + weight;
        if after <= self.cap {
            return StepResult::Admit { words: [now, after], fresh_in: Some(after) };
        }
        StepResult::Refuse(Earliest::At(after - self.cap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plainly(step: &StepResult) -> (Words, Option<Earliest>) {
        match step {
            StepResult::Admit { words, .. } => (*words, None),
            StepResult::Refuse(earliest) => ([0; 2], Some(*earliest)),
        }
    }

    #[test]
    fn a_plain_part_steps_like_the_part() {
        let bucket = TokenBucket::new(100, 1_000_000, 50, 50).expect("a bucket");
        for (members, cost) in [(1, 1), (3, 1), (7, 2), (60, 1), (10, 6)] {
            let part = Part::one_of(members);
            let (whole, plain) = (bucket.in_part(part), bucket.in_plain_part(part));
            let (whole, plain) = (whole.expect("exact"), plain.expect("exact"));
            for debt in [0, 1, 9_999, 430_000, 500_000, 600_000] {
                for passed in [0, 5, 40_000, 700_000] {
                    let words = [1_000_000, debt];
                    let (expected, step) = (
                        whole.step(words, 1_000_000 + passed, cost),
                        plain.step(words, 1_000_000 + passed, cost),
                    );
                    assert_eq!(plainly(&step), plainly(&expected));
                }
            }
        }
    }
}
