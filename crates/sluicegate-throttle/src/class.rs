use std::fmt;

use crate::error::{ConfigError, MAX_CLASSES};
/// The criticality of a request, as its rank in the [`Classes`] of a throttle: 0 is the most critical.
///
/// The constants name the four classes of [`Classes::four`]. For other orders, ask
/// [`Classes::class`] for a class by its name. A rank below the lowest class of a throttle means the lowest class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(u8);

impl Class {
    /// The highest of [four](Classes::four): a failure is a serious outage for users.
    pub const CRITICAL_PLUS: Self = Self(0);
    /// The second of [four](Classes::four): users notice a failure.
    pub const CRITICAL: Self = Self(1);
    /// The third of [four](Classes::four): partly unavailable is expected, such as batch work that is tried again.
    pub const SHEDDABLE_PLUS: Self = Self(2);
    /// The lowest of [four](Classes::four): often unavailable, such as prefetching.
    pub const SHEDDABLE: Self = Self(3);

    /// The class with this rank; 0 is the most critical.
    pub const fn at(rank: u8) -> Self {
        Self(rank)
    }

    /// The rank; 0 is the most critical.
    pub const fn rank(self) -> usize {
        self.0 as usize
    }
}

/// The classes of criticality that a throttle tells apart, the most critical first.
///
/// ```
/// use sluicegate_throttle::{Class, Classes};
///
/// assert_eq!(Classes::four().class("critical_plus"), Some(Class::CRITICAL_PLUS));
///
/// let shop = Classes::named(["checkout", "browsing", "crawlers"])?;
/// assert!(shop.class("checkout") < shop.class("crawlers"));
/// assert_eq!(shop.class("unknown"), None);
/// # Ok::<(), sluicegate_throttle::ConfigError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Classes(Box<[Box<str>]>);

impl Classes {
    /// `CRITICAL_PLUS`, `CRITICAL`, `SHEDDABLE_PLUS` and `SHEDDABLE`, as in the Google SRE book.
    pub fn four() -> Self {
        Self::of(["CRITICAL_PLUS", "CRITICAL", "SHEDDABLE_PLUS", "SHEDDABLE"])
    }

    /// `CRITICAL` and `NOT_CRITICAL`.
    pub fn two() -> Self {
        Self::of(["CRITICAL", "NOT_CRITICAL"])
    }

    /// Your own classes, the most critical first.
    ///
    /// # Errors
    ///
    /// When there are no names or more than [`MAX_CLASSES`], when a name is empty, and when a name appears twice.
    pub fn named<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, ConfigError> {
        let names: Vec<&str> = names.into_iter().take(MAX_CLASSES + 1).collect();
        let twice = |(i, name): (usize, &&str)| {
            names[..i].iter().any(|earlier| earlier.eq_ignore_ascii_case(name))
        };
        if names.is_empty() || names.len() > MAX_CLASSES || names.contains(&"") {
            return Err(ConfigError::Classes(names.len()));
        }
        if let Some((_, name)) = names.iter().enumerate().find(|&named| twice(named)) {
            return Err(ConfigError::ClassTwice((*name).to_owned()));
        }
        Ok(Self::of(names))
    }

    fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }

    /// The class with this name, in upper or lower case.
    pub fn class(&self, name: &str) -> Option<Class> {
        let rank = self.0.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        u8::try_from(rank).ok().map(Class)
    }

    /// The name of a class; of the lowest class for a rank below it.
    pub fn name(&self, class: Class) -> &str {
        &self.0[class.rank().min(self.0.len() - 1)]
    }

    /// How many classes there are: at least 1, at most [`MAX_CLASSES`].
    #[expect(clippy::len_without_is_empty, reason = "there is always a class")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The least critical class.
    pub fn lowest(&self) -> Class {
        Class(u8::try_from(self.0.len() - 1).unwrap_or(u8::MAX))
    }
}

impl fmt::Debug for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_of_classes_that_cannot_work_is_refused_with_a_sentence() {
        assert!(Classes::named([]).is_err());
        assert!(Classes::named(["a", ""]).is_err());
        assert!(Classes::named(["a"; 9]).is_err());
        let twice = Classes::named(["batch", "Batch"]).unwrap_err();
        assert_eq!(twice.to_string(), "the class `Batch` is named twice");
    }
}
