use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// What the application's own authentication found out about the client, such as the customer and the plan.
///
/// A layer of the application inserts it into the request's extensions, outside of the limit. For unknown clients it is
/// empty, or not there. Rules then read it by name with [`Claim`](super::Claim), in code or from a file.
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
    /// Ordered, so that many claims are no dearer to add and to find than a few. Up to eleven are one node, which is
    /// searched from its beginning.
    pairs: BTreeMap<Cow<'static, str>, Cow<'static, str>>,
}

impl Claims {
    /// Claims that say nothing.
    pub const fn new() -> Self {
        Self { pairs: BTreeMap::new() }
    }

    /// Adds that `name` is `value`. Replaces an earlier value of `name`.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.pairs.insert(name.into(), value.into());
        self
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.get(name).map(AsRef::as_ref)
    }
}

/// Shows only the names: the values describe a person and do not belong in a log.
impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claims ")?;
        f.debug_set().entries(self.pairs.keys()).finish()
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
    fn claims_are_the_same_in_any_order() {
        let claims = Claims::new().with("id", "7").with("plan", "free");
        assert_eq!(claims, Claims::new().with("plan", "free").with("id", "7"));
        assert_ne!(claims, Claims::new().with("plan", "free"));
    }

    #[test]
    fn no_value_is_shown_in_a_log() {
        let claims = Claims::new().with("customer", String::from("acme"));
        assert_eq!(format!("{claims:?}"), r#"Claims {"customer"}"#);
    }
}
