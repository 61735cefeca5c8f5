use super::number::{NumberError, quotient, scaled, whole};
use super::{Amount, ContentLength, CostOf};
use crate::key::{Missing, View};

/// The cost that a client states in a [`Header`](crate::Header) or a [`Query`](crate::key::Query) parameter.
///
/// A client gains by understating the cost, so use it for costs that are checked elsewhere, or
/// [settled](crate::rule::By::settle_cost) with the response. No request costs less than 1, unless
/// [`at_least`](CostFrom::at_least) says so. A value that is not a whole number or is
/// [too large](CostFrom::at_most), and a header with two different values, are answered with 400.
///
/// ```
/// use sluicegate::{Claim, Header, Limit};
/// use sluicegate::cost::cost_from;
///
/// // 200 dollars a day, told in cents.
/// let rule = Limit::per_day(20_000)
///     .by(Claim("customer"))
///     .cost(cost_from(Header("x-dollars")).scaled(100).at_most(500).default(10));
/// ```
pub fn cost_from<S>(source: S) -> CostFrom<S> {
    CostFrom { source, default: None, least: 1, most: u64::MAX, per: 1, scale: None }
}

/// The length of the body that a request declares, in bytes, as its cost; mostly
/// [in larger units](CostFrom::per).
///
/// If no length is declared, a request with a method that usually has no body (GET, HEAD, DELETE, OPTIONS, TRACE)
/// costs the least. Any other request may have a body of any length, so it has to declare the length (400), unless
/// [`default`](CostFrom::default) says what such a request costs.
///
/// In HTTP/2, a GET or DELETE can have a body of any length without declaring it. If a handler for these methods
/// reads bodies, bound them with a body limit.
///
/// ```
/// use sluicegate::{Ip, Limit};
/// use sluicegate::cost::content_length;
///
/// // A hundred megabytes an hour, counted in kilobytes begun; 64 if the length is unknown.
/// let rule = Limit::per_hour(100_000).by(Ip::peer()).cost(content_length().per(1_000).default(64));
/// ```
pub fn content_length() -> CostFrom<ContentLength> {
    cost_from(ContentLength)
}

/// A cost that the request states; see [`cost_from`] and [`content_length`].
///
/// The number is [scaled](Self::scaled), [divided](Self::per) and rounded up once. The bounds and the default apply to
/// the result.
#[derive(Debug, Clone, Copy)]
pub struct CostFrom<S> {
    source: S,
    default: Option<u64>,
    least: u64,
    most: u64,
    per: u64,
    scale: Option<u64>,
}

impl<S> CostFrom<S> {
    /// The cost of a request without the value. Without a default, such a request is answered with 400.
    #[must_use]
    pub fn default(self, cost: u64) -> Self {
        Self { default: Some(cost), ..self }
    }

    /// The smallest cost, 1 by default. A request with a smaller value costs this.
    ///
    /// # Panics
    ///
    /// If it is more than [`at_most`](Self::at_most).
    #[must_use]
    #[track_caller]
    pub fn at_least(self, cost: u64) -> Self {
        Self { least: cost, ..self }.checked()
    }

    /// The largest cost. A request with a larger value is answered with 400.
    ///
    /// # Panics
    ///
    /// If it is less than [`at_least`](Self::at_least).
    #[must_use]
    #[track_caller]
    pub fn at_most(self, cost: u64) -> Self {
        Self { most: cost, ..self }.checked()
    }

    /// One for each `units` begun: the number is divided by `units` and rounded up.
    ///
    /// # Panics
    ///
    /// If `units` is 0.
    #[must_use]
    #[track_caller]
    pub fn per(self, units: u64) -> Self {
        assert!(units > 0, "a cost for each 0 units has no end");
        Self { per: units, ..self }
    }

    /// Reads a decimal number and multiplies it by `scale`, exactly: with 100, `0.25` dollars are 25
    /// cents.
    ///
    /// # Panics
    ///
    /// If `scale` is 0.
    #[must_use]
    #[track_caller]
    pub fn scaled(self, scale: u64) -> Self {
        assert!(scale > 0, "scaled by 0, every request would cost nothing");
        Self { scale: Some(scale), ..self }
    }

    #[track_caller]
    fn checked(self) -> Self {
        let Self { least, most, .. } = self;
        assert!(least <= most, "no cost is at least {least} and at most {most}");
        self
    }

    fn cost(&self, text: &[u8]) -> Result<u64, NumberError> {
        let number = match self.scale {
            Some(scale) => scaled(text, scale)?,
            None => whole(text)?.into(),
        };
        let cost = u64::try_from(number.div_ceil(self.per.into())).ok();
        let cost = cost.filter(|cost| *cost <= self.most).ok_or(NumberError::TooLarge)?;
        Ok(cost.max(self.least))
    }

    /// What the client has to write in `place`, with the bound if the client needs to know it.
    #[cold]
    fn wanted(&self, wrong: NumberError, place: &str) -> Missing {
        let number = if self.scale.is_some() { "decimal" } else { "whole" };
        if wrong == NumberError::NoNumber && self.most == u64::MAX {
            return Missing::client(format!("a {number} number in {place}"));
        }
        let most = u128::from(self.most) * u128::from(self.per);
        let most = quotient(most, self.scale.unwrap_or(1));
        Missing::client(format!("a {number} number of at most {most} in {place}"))
    }
}

impl<V: View, S: Amount<V>> CostOf<V> for CostFrom<S> {
    fn of(&self, view: &V) -> Result<u64, Missing> {
        match self.source.read(view, |text| self.cost(text)) {
            Ok(cost) => cost.map_err(|wrong| self.wanted(wrong, &self.source.place())),
            Err(missing) if missing.is_client() && !missing.is_ambiguous() => {
                self.default.ok_or(missing)
            }
            Err(missing) => Err(missing),
        }
    }

    fn is_length(&self) -> bool {
        Amount::<V>::is_length(&self.source)
    }
}
