use crate::amount::Amount;
use crate::fair::Want;

/// A band of priority. Band 0 is served first; a band gets what the bands before it leave, and its floor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Band(pub u8);

/// What a client wants in one band.
///
/// A client has one demand. A server that asks on behalf of its clients has several: see
/// [`Pool::demands`](crate::Pool::demands).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// The band of priority.
    pub band: Band,
    /// The most that can be used, and the weight.
    pub want: Want,
}

impl Demand {
    /// Wants `wants` in the first band, with a weight of 1.
    pub const fn of(wants: Amount) -> Self {
        Self { band: Band(0), want: Want { wants, weight: 1 } }
    }

    /// Sets the weight.
    #[must_use]
    pub const fn weight(mut self, weight: u32) -> Self {
        self.want.weight = weight as u64;
        self
    }

    /// Sets the band.
    #[must_use]
    pub const fn band(mut self, band: u8) -> Self {
        self.band = Band(band);
        self
    }
}
