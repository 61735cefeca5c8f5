use std::borrow::Cow;
use std::fmt;

use super::Missing;

/// What the application's own authentication found out about the client, such as the customer and the plan.
///
/// A layer of the application inserts it into the request's extensions, outside of the limit, for every request. For
/// unknown clients it is empty. Rules then read it by name with [`Claim`](super::Claim), in code or from a file.
///
/// ```
/// use sluicegate::key::Claims;
///
/// let claims = Claims::new().with("customer", "acme").with("plan", "paid");
/// assert_eq!(claims.get("plan"), Some("paid"));
/// assert_eq!(claims.get("region"), None);
/// ```
///
/// Insert only what was verified. An unchecked text from the client, such as an API key that is in no table, lets the
/// client choose its own tier, and gives it a fresh budget with every request.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Claims {
    /// There are only a few, so a linear search is quicker than hashing.
    pairs: Vec<(Cow<'static, str>, Cow<'static, str>)>,
}

impl Claims {
    /// Claims that say nothing.
    pub const fn new() -> Self {
        Self { pairs: Vec::new() }
    }

    /// Adds that `name` is `value`. Replaces an earlier value of `name`.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (name, value) = (name.into(), value.into());
        self.pairs.retain(|(known, _)| *known != name);
        self.pairs.push((name, value));
        self
    }

    /// What an operator reads if the extension is missing.
    pub(crate) fn absent() -> Missing {
        Missing::server(
            "the `Claims` extension",
            "add the layer that inserts `Claims` outside of the rate limit, so that it runs first; \
             for strangers it inserts `Claims::new()`",
        )
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_ref())
    }
}

/// Shows only the names: the values describe a person and do not belong in a log.
impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claims ")?;
        f.debug_set().entries(self.pairs.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_last_of_a_name_counts() {
        let claims = Claims::new().with("plan", "free").with("id", "7").with("plan", "paid");
        assert_eq!(claims.get("plan"), Some("paid"));
        assert_eq!(claims.get("id"), Some("7"));
        assert_eq!(claims.get("Plan"), None);
    }

    #[test]
    fn no_value_is_shown_in_a_log() {
        let claims = Claims::new().with("customer", String::from("acme"));
        assert_eq!(format!("{claims:?}"), r#"Claims {"customer"}"#);
    }
}
