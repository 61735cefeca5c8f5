use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::fair::{self, Band, Demand, Division, Want};
use crate::message::{MAX_DEMANDS, MAX_WEIGHT};
use crate::template::{Algorithm, Template};

/// How a capacity is divided among bands, and inside of each.
#[derive(Debug, Clone, Default)]
pub(super) struct Bands(Vec<(Band, Division)>);

impl Bands {
    /// Divides `capacity`: every band gets its floor, as far as it wants it, then the bands are served in order.
    pub(super) fn divide(capacity: Amount, template: &Template, demands: &mut [Demand]) -> Self {
        // By band, so that each is one piece. The order inside does not matter to a division.
        demands.sort_unstable_by_key(|demand| demand.band);
        let bands: Vec<_> = demands.chunk_by(|one, other| one.band == other.band).collect();
        let wanted: Vec<Amount> =
            bands.iter().map(|band| band.iter().map(|demand| demand.want.wants).sum()).collect();

        let mut left = capacity;
        let mut parts: Vec<Amount> = bands.iter().map(|_| Amount::ZERO).collect();
        let floors = bands.iter().map(|band| template.floor_of(band[0].band));
        let floors: Vec<_> =
            floors.zip(&wanted).map(|(floor, wanted)| floor.min(*wanted)).collect();
        // Twice over the bands in order: first what is kept for each, then what each wants beyond it.
        for bounds in [floors, wanted] {
            for (part, bound) in parts.iter_mut().zip(bounds) {
                let more = bound.saturating_sub(*part).min(left);
                *part = *part + more;
                left = left - more;
            }
        }
        let divided = bands.into_iter().zip(parts).map(|(band, part)| {
            let mut wants: Vec<Want> = band.iter().map(|demand| demand.want).collect();
            // What a band gets is now fixed. Inside, its members are treated as if there were no others.
            let division = match template.algorithm {
                Algorithm::None | Algorithm::Static => Division::Enough,
                Algorithm::ProportionalShare => fair::proportional(part, &wants),
                Algorithm::FairShare => fair::max_min(part, &mut wants),
            };
            (band[0].band, division)
        });
        Self(divided.collect())
    }

    /// The share of a demand. A band that nobody has asked in has no capacity until the next division.
    pub(super) fn share(&self, demand: &Demand) -> Amount {
        let division = self.0.iter().find(|(band, _)| *band == demand.band);
        division.map_or(Amount::ZERO, |(_, division)| division.share(demand.want))
    }
}

/// Adds demands up, so that a server with many clients asks with few.
///
/// Demands of one band whose wants per weight are within a factor of two become one. So a parent knows which of a
/// server's clients want little and which want much, and its fair shares are nearly those of one large pool. If that is
/// more than [`MAX_DEMANDS`], the least critical bands are told with fewer details. No demand is told in another band,
/// unless there are more bands than that.
pub(super) fn aggregate<'a>(demands: impl Iterator<Item = &'a Demand>) -> Vec<Demand> {
    // The least critical band first, and in it the smallest wants.
    let mut groups: BTreeMap<(Reverse<Band>, bool, u32), Want> = BTreeMap::new();
    for Demand { band, want, whole } in demands {
        // By wants per weight, because that is what decides who is above the water level and who is below it.
        let per_weight = want.wants.millionths() / want.weight.max(1);
        let group = groups
            // Groups by powers of two.
            .entry((Reverse(*band), *whole, u64::BITS - per_weight.leading_zeros()))
            .or_insert(Want { wants: Amount::ZERO, weight: 0 });
        *group = sum(*group, *want);
    }
    let groups = groups.into_iter();
    let mut demands: Vec<Demand> =
        groups.map(|((Reverse(band), whole, _), want)| Demand { band, want, whole }).collect();
    for joins_bands in [false, true] {
        let mut excess = demands.len().saturating_sub(MAX_DEMANDS);
        demands.dedup_by(|next, joined| {
            let joins = excess > 0 && (joins_bands || next.band == joined.band);
            if joins {
                excess -= 1;
                // In the less critical of two bands, so that it takes nothing from clients of other servers.
                joined.want = sum(joined.want, next.want);
                joined.whole &= next.whole;
            }
            joins
        });
    }
    for Demand { want, .. } in &mut demands {
        // A parent takes no larger weights.
        want.weight = want.weight.min(MAX_WEIGHT);
    }
    demands
}

fn sum(one: Want, other: Want) -> Want {
    let weight = one.weight.saturating_add(other.weight);
    Want { wants: one.wants + other.wants, weight }
}
