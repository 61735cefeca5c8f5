use crate::amount::Amount;
use crate::demand::{Band, Demand};
use crate::fair::{self, Division, Want};
use crate::template::{Algorithm, Template};

/// How a capacity is divided among bands, and inside of each.
#[derive(Debug, Clone, Default)]
pub(super) struct Bands(Vec<(Band, Division)>);

impl Bands {
    /// Divides `capacity`: every band gets its floor, as far as it wants it, then the bands are served in order.
    pub(super) fn divide(capacity: Amount, template: &Template, demands: &mut [Demand]) -> Self {
        demands.sort_unstable_by_key(|demand| demand.band);
        let bands: Vec<_> = demands.chunk_by(|one, other| one.band == other.band).collect();
        let wanted: Vec<Amount> =
            bands.iter().map(|band| band.iter().map(|demand| demand.want.wants).sum()).collect();

        let mut left = capacity;
        let mut parts: Vec<Amount> = bands.iter().map(|_| Amount::ZERO).collect();
        let floors = bands.iter().map(|band| template.floor_of(band[0].band));
        let floors: Vec<_> =
            floors.zip(&wanted).map(|(floor, wanted)| floor.min(*wanted)).collect();
        for bounds in [floors, wanted] {
            for (part, bound) in parts.iter_mut().zip(bounds) {
                let more = bound.saturating_sub(*part).min(left);
                *part = *part + more;
                left = left - more;
            }
        }
        let divided = bands.into_iter().zip(parts).map(|(band, part)| {
            let mut wants: Vec<Want> = band.iter().map(|demand| demand.want).collect();
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
