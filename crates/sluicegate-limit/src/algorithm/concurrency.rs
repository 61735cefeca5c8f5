//! Concurrency: at most `count` at a time, independent of the clock. The words are `[held, unused]`.

use crate::exact::Earliest;
use crate::state::Words;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Concurrency {
    count: u64,
}

impl Concurrency {
    pub(crate) const fn new(count: u64) -> Self {
        Self { count }
    }

    pub(crate) fn earliest(&self, [held, _]: Words, cost: u64, from: u64) -> Earliest {
        if cost > self.count {
            Earliest::Never
        } else if held + cost <= self.count {
            Earliest::At(from)
        } else {
            Earliest::Unknown(from)
        }
    }

    pub(crate) fn spend(words: &mut Words, cost: u64) {
        words[0] += cost;
    }

    pub(crate) fn give(words: &mut Words, back: u64) {
        words[0] = words[0].saturating_sub(back);
    }

    pub(crate) fn remaining(&self, [held, _]: Words) -> u64 {
        self.count.saturating_sub(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_giving_back_makes_room() {
        let three = Concurrency::new(3);
        let mut words = [0; 2];
        Concurrency::spend(&mut words, 2);
        assert_eq!(three.earliest(words, 1, 0), Earliest::At(0));
        assert_eq!(three.earliest(words, 2, 0), Earliest::Unknown(0));
        assert_eq!(three.earliest(words, 2, 9), Earliest::Unknown(9));
        assert_eq!(three.earliest(words, 4, 0), Earliest::Never);
        Concurrency::give(&mut words, 1);
        assert_eq!(three.earliest(words, 2, 0), Earliest::At(0));
        // Giving back twice by mistake never frees more than the whole.
        Concurrency::give(&mut words, 9);
        assert_eq!(three.remaining(words), 3);
    }
}
