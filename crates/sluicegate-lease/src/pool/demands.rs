use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::demand::{Band, Demand};
use crate::fair::Want;
use crate::pool::ask::{MAX_DEMANDS, MAX_WEIGHT};

/// Adds demands up, so that a server with many clients asks with few.
///
/// Demands of one band whose wants per weight are within a factor of two become one. So a parent knows which of a
/// server's clients want little and which want much, and its fair shares are nearly those of one large pool.
pub(super) fn aggregate<'a>(demands: impl Iterator<Item = &'a Demand>) -> Vec<Demand> {
    let mut groups: BTreeMap<(Band, u32), Want> = BTreeMap::new();
    for Demand { band, want } in demands {
        let per_weight = want.wants.millionths() / want.weight.max(1);
        let group = groups
            .entry((*band, u64::BITS - per_weight.leading_zeros()))
            .or_insert(Want { wants: Amount::ZERO, weight: 0 });
        group.wants = group.wants + want.wants;
        group.weight = group.weight.saturating_add(want.weight);
    }
    while groups.len() > MAX_DEMANDS {
        // Too many bands: those of the smallest wants join the next group.
        let Some(((band, magnitude), want)) = groups.pop_first() else { break };
        let next = groups.range((band, magnitude)..).next().map(|(key, _)| *key);
        let Some(next) = next.and_then(|next| groups.get_mut(&next)) else { break };
        next.wants = next.wants + want.wants;
        next.weight = next.weight.saturating_add(want.weight);
    }
    // A parent takes no larger weights.
    let bounded = |want: Want| Want { weight: want.weight.min(MAX_WEIGHT), ..want };
    groups.into_iter().map(|((band, _), want)| Demand { band, want: bounded(want) }).collect()
}
