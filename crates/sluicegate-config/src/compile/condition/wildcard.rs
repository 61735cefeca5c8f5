use sluicegate_core::condition::{Condition, Values};
use sluicegate_core::key::{Cookie, Host, Missing, Query, View};
use sluicegate_core::{Claim, Header};

use crate::document::{Key, Wildcard};

impl<V: View> Condition<V> for Wildcard {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        match &self.key {
            Key::Header(name) => self.values(view, &Header(name)),
            Key::Cookie(name) => self.values(view, &Cookie(name)),
            Key::Query(name) => self.values(view, &Query(name)),
            Key::Claim(name) => self.values(view, &Claim(name)),
            Key::Method => Ok(self.fits(view.method().as_bytes())),
            Key::Path => Ok(self.fits(view.path().as_bytes())),
            Key::Route => Ok(view.route().is_some_and(|route| self.fits(route.as_bytes()))),
            Key::Host => self.values(view, &Host),
            _ => Ok(false),
        }
    }
}

impl Wildcard {
    fn values<V: View>(&self, view: &V, values: &impl Values<V>) -> Result<bool, Missing> {
        let is_any = values.any(view, |value| self.fits(value))?;
        Ok(is_any && !(self.every && values.any(view, |value| !self.fits(value))?))
    }

    /// An empty text counts as missing, as for keys.
    fn fits(&self, text: &[u8]) -> bool {
        !text.is_empty() && self.patterns.iter().any(|pattern| Self::matches(pattern, text))
    }
}
