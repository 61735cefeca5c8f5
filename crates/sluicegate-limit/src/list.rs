use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::error::LimitError;
use crate::inline_vec::InlineVec;
use crate::internal::IntoRule;
use crate::limit::Limit;

/// Most limits that one request can owe to.
pub const MAX_LIMITS: usize = 16;

/// Several limits on one key, charged all or none.
///
/// A request is admitted at the first moment at which every limit lets it in. If one limit holds the request back in
/// a queue, the other limits book its place at that moment: a window books in the window in which the request
/// leaves, a bucket is booked as if it were idle until then. A request that waits an hour in a slow leaky bucket so
/// empties a fast bucket beside it for that hour. If it leaves before, the fast bucket gets the cost back, and stays
/// booked as idle. On one key, this only affects requests that would wait anyway. Limits on keys that others share
/// (another key in the same charge) let all requests that wait keep at most half of a bucket or a
/// [gap](Limit::min_gap) from them, and nothing of a window. For a log, a request waits for at most half of its period.
/// A place that cannot be booked, because it is too far ahead for the bucket to be counted exactly (the time times the
/// rate, in lowest terms, has to stay below 2^53) or because it keeps too much from others, is refused, and the client
/// is told when the queue has become short enough.
///
/// ```
/// # mod sluicegate { pub use sluicegate_limit::Limit; pub mod limit { pub use sluicegate_limit::*; } }
/// use sluicegate::Limit;
/// use sluicegate::limit::Limits;
///
/// let limits = Limits::from([Limit::per_second(10), Limit::per_day(10_000)]);
/// assert_eq!("10/second; 10000/day".parse(), Ok(limits));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Limits(InlineVec<Limit>);

impl Limits {
    /// The limit, if there is no other.
    #[inline]
    pub fn only(&self) -> Option<&Limit> {
        self.0.only()
    }

    /// The limits, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Limit> + Clone {
        self.0.iter()
    }

    /// The rule that charges these limits to `key`: a `By` of `sluicegate::rule`.
    pub fn by<K, Buffer>(self, key: K) -> <Self as IntoRule<Buffer>>::By<K>
    where
        Self: IntoRule<Buffer>,
    {
        IntoRule::by(self, key)
    }

    /// # Panics
    ///
    /// If [`try_from_iter`](Self::try_from_iter) returns an error.
    #[track_caller]
    fn checked(limits: impl IntoIterator<Item = Limit>) -> Self {
        match Self::try_from_iter(limits) {
            Ok(limits) => limits,
            Err(error) => panic!("{error}"),
        }
    }

    /// Like `From`, for limits from configuration.
    ///
    /// # Errors
    ///
    /// On no limit, on more than [`MAX_LIMITS`], and on two that are alike or share a name.
    pub fn try_from_iter(limits: impl IntoIterator<Item = Limit>) -> Result<Self, LimitError> {
        let limits: InlineVec<Limit> = limits.into_iter().collect();
        if limits.is_empty() {
            return Err(LimitError::new("there is no limit in the list"));
        }
        if limits.len() > MAX_LIMITS {
            return Err(LimitError::new("there are more than 16 limits in the list"));
        }
        for (i, limit) in limits.iter().enumerate() {
            let name = limit.own_name();
            let is_alike = |earlier: &Limit| {
                earlier.id() == limit.id() || name.is_some() && earlier.own_name() == name
            };
            if limits.iter().take(i).any(is_alike) {
                return Err(LimitError::new(
                    "two limits in the list are alike or share a name: name them apart",
                ));
            }
        }
        Ok(Self(limits))
    }
}

impl Limit {
    /// The rule that charges this limit to `key`: a `By` of `sluicegate::rule`.
    pub fn by<K, Buffer>(self, key: K) -> <Limits as IntoRule<Buffer>>::By<K>
    where
        Limits: IntoRule<Buffer>,
    {
        Limits::from(self).by(key)
    }
}

impl From<Limit> for Limits {
    fn from(limit: Limit) -> Self {
        Self(InlineVec::of(Some(limit)))
    }
}

/// # Panics
///
/// On no limit, on more than [`MAX_LIMITS`], and on two that are alike or share a name.
impl<const N: usize> From<[Limit; N]> for Limits {
    #[track_caller]
    fn from(limits: [Limit; N]) -> Self {
        Self::checked(limits)
    }
}

/// # Panics
///
/// On no limit, on more than [`MAX_LIMITS`], and on two that are alike or share a name.
impl From<Vec<Limit>> for Limits {
    #[track_caller]
    fn from(limits: Vec<Limit>) -> Self {
        Self::checked(limits)
    }
}

impl FromStr for Limits {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let limits = texts(text).map(str::parse).collect::<Result<Vec<_>, _>>()?;
        Self::try_from_iter(limits).map_err(|error| error.in_text(text))
    }
}

/// The texts between semicolons. A semicolon in a quoted name does not separate.
fn texts(list: &str) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    list.split(move |char: char| {
        let border = char == ';' && !quoted;
        quoted ^= char == '"' && !escaped;
        escaped = char == '\\' && quoted && !escaped;
        border
    })
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, limit) in self.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            limit.fmt(f)?;
        }
        Ok(())
    }
}
