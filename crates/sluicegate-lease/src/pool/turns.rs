use crate::amount::Amount;
use crate::fair::Demand;
use crate::pool::bands::Bands;

/// Who has the units of which several clients have a part, where parts are of no use.
///
/// Think of the shares of all clients as a row, in which a mark comes after each unit. A client has as many units as there
/// are marks in its part of the row: the whole units of its share, or one more. The row moves past the marks with time, so
/// each client has the one more for a time in proportion to what it has of it. A client that is granted less gives the unit
/// back as it gives back any capacity, and only then somebody else has it.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns {
    /// Where the part of each client begins, in millionths after a mark. Empty where nobody needs whole units.
    begins: Vec<u64>,
}

/// The number of refresh intervals in which the row moves by a unit. A unit that moves to another client is unused until
/// both clients have asked, for about a third of an interval.
const AROUND: u64 = 12;
const UNIT: u64 = Amount::units(1).millionths();

impl Turns {
    /// Puts the demands of all clients in a row.
    pub(super) fn of<'a>(bands: &Bands, demands: impl Iterator<Item = &'a [Demand]>) -> Self {
        let mut end = 0;
        let begin = |demands: &[Demand]| {
            let begin = end;
            let whole = demands.iter().filter(|demand| demand.whole);
            end = (begin + whole.map(|demand| part(bands, demand)).sum::<u64>()) % UNIT;
            begin
        };
        Self { begins: demands.map(begin).collect() }
    }

    /// What the client at this place should have. A client that came since is at the beginning.
    pub(super) fn share(
        &self,
        now: u64,
        refresh: u64,
        bands: &Bands,
        at: usize,
        demands: &[Demand],
    ) -> Amount {
        let around = refresh.saturating_mul(AROUND);
        // A unit takes no more than 2^20 millionths, and a refresh interval less than 2^27 milliseconds.
        let moved = now % around * UNIT / around;
        let mut end = self.begins.get(at).copied().unwrap_or_default() + moved;
        let share = |demand: &Demand| {
            if !demand.whole {
                return bands.share(demand);
            }
            let begin = end;
            end += part(bands, demand);
            Amount::units(end / UNIT - begin / UNIT)
        };
        demands.iter().map(share).sum()
    }
}

/// The part of a demand in the row. With what was rounded off shares, all that there is would not reach the last mark.
fn part(bands: &Bands, demand: &Demand) -> u64 {
    let share = bands.share(demand);
    share.millionths() + u64::from(!share.is_zero() && share < demand.want.wants)
}
