//! The level of admission in responses: callers that read it need not send what would be shed, as in WeChat's DAGOR.
//!
//! A layer with [`announce`](crate::layer::ThrottleLayer::announce) adds the field to every response, also to those
//! that refuse. It is an Item of Structured Fields (RFC 9651):
//!
//! ```text
//! sluicegate-admission: 2;of=4;lowest="CRITICAL";t=1
//! ```
//!
//! - The Integer is the number of classes that are admitted at present, the most critical first. 0 means none.
//! - `of`, an Integer, says how many classes there are. It is required.
//! - `lowest`, a String, is the name of the lowest class that is admitted. It is left out if no class is admitted, and
//!   if the name is not printable ASCII.
//! - `t`, an Integer, is the number of seconds for which the value is valid. The default is 1.
//!
//! Unknown parameters are ignored. A field with any other error is ignored as a whole. After `t` seconds, or after the
//! first response without the field, a caller assumes again that all classes are admitted.
//!
//! A cached response does not tell the present level. The layer therefore leaves the field out of responses that caches
//! may store for other clients, and a caller ignores it in a response with an `Age`.
//!
//! Callers read it with `Announcement::parse` (feature `parse`).

use std::fmt;
use std::time::Duration;

#[cfg(feature = "parse")]
use sfv::{BareItem, Item, Parser};

use crate::class::{Class, Classes};
#[cfg(feature = "parse")]
use crate::error::MAX_CLASSES;

/// The name of the field.
pub const FIELD: &str = "sluicegate-admission";

/// How many classes a service admits at present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    admitted: usize,
    classes: usize,
    lowest: Option<String>,
    seconds: u64,
}

impl Announcement {
    /// The `admitted` most critical of `classes`, for a second.
    pub fn new(admitted: usize, classes: &Classes) -> Self {
        let admitted = admitted.min(classes.len());
        // At most eight classes.
        let lowest = admitted.checked_sub(1).map(|rank| classes.name(Class::at(rank as u8)));
        let lowest = lowest.filter(|name| name.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        Self { admitted, classes: classes.len(), lowest: lowest.map(str::to_owned), seconds: 1 }
    }

    /// How many classes are admitted, the most critical first.
    pub const fn admitted(&self) -> usize {
        self.admitted
    }

    /// How many classes there are.
    pub const fn classes(&self) -> usize {
        self.classes
    }

    /// Whether requests of this class are admitted.
    pub const fn admits(&self, class: Class) -> bool {
        let (rank, lowest) = (class.rank(), self.classes - 1);
        (if rank < lowest { rank } else { lowest }) < self.admitted
    }

    /// The name of the lowest class that is admitted.
    pub fn lowest(&self) -> Option<&str> {
        self.lowest.as_deref()
    }

    /// How long the level is valid: at most a minute.
    pub const fn lasts(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

#[cfg(feature = "parse")]
impl Announcement {
    /// Reads the value of the field. `None` if the value is invalid: the level is then unknown.
    ///
    /// A field that appears in several lines is invalid as well. Join the lines with a comma, as HTTP does, before you
    /// pass them.
    ///
    /// ```
    /// use sluicegate_throttle::Class;
    /// use sluicegate_throttle::announce::Announcement;
    ///
    /// let level = Announcement::parse("2;of=4;lowest=\"CRITICAL\";t=1").expect("a level");
    /// assert!(level.admits(Class::CRITICAL));
    /// assert!(!level.admits(Class::SHEDDABLE_PLUS));
    /// assert_eq!(level.to_string(), "2;of=4;lowest=\"CRITICAL\";t=1");
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "parse")))]
    pub fn parse(value: &str) -> Option<Self> {
        /// Longest field that is read, in bytes.
        const LONGEST: usize = 256;
        /// Longest time for which a level is valid, in seconds. One response cannot keep callers away for longer.
        const AT_MOST: u64 = 60;

        let number = |item: &BareItem| u64::try_from(i64::from(item.as_integer()?)).ok();
        let value = Some(value).filter(|value| value.len() <= LONGEST)?;
        let Item { bare_item, params } = Parser::new(value).parse().ok()?;
        let (admitted, classes) = (number(&bare_item)?, number(params.get("of")?)?);
        if !(1..=MAX_CLASSES as u64).contains(&classes) || admitted > classes {
            return None;
        }
        let lowest = match params.get("lowest") {
            Some(name) => Some(name.as_string()?.as_str().to_owned()),
            None => None,
        };
        let seconds = params.get("t").map_or(Some(1), number)?.min(AT_MOST);
        Some(Self { admitted: admitted as usize, classes: classes as usize, lowest, seconds })
    }
}

/// The value of the field.
impl fmt::Display for Announcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{};of={}", self.admitted, self.classes)?;
        if let Some(name) = &self.lowest {
            f.write_str(";lowest=\"")?;
            for letter in name.chars() {
                if matches!(letter, '"' | '\\') {
                    f.write_str("\\")?;
                }
                write!(f, "{letter}")?;
            }
            f.write_str("\"")?;
        }
        write!(f, ";t={}", self.seconds)
    }
}

#[cfg(all(test, feature = "parse"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            names in proptest::collection::btree_set("[ -~]{1,20}", 1..8),
            admitted in 0..9_usize,
        ) {
            let Ok(classes) = Classes::named(names.iter().map(String::as_str)) else {
                // Equal but for upper and lower case.
                return Ok(());
            };
            let level = Announcement::new(admitted, &classes);
            prop_assert_eq!(Announcement::parse(&level.to_string()), Some(level));
        }

        #[test]
        fn nothing_makes_the_reader_panic(value in ".{0,40}") {
            let _ = Announcement::parse(&value);
        }
    }

    #[test]
    fn a_level_admits_the_most_critical_classes() {
        let admits = |admitted| {
            let level = Announcement::new(admitted, &Classes::four());
            [0, 1, 2, 3, 200].map(|rank| level.admits(Class::at(rank)))
        };
        assert_eq!(admits(0), [false; 5]);
        assert_eq!(admits(1), [true, false, false, false, false]);
        assert_eq!(admits(4), [true; 5]);
        assert_eq!(Announcement::new(0, &Classes::four()).to_string(), "0;of=4;t=1");
        let named = Classes::named(["kritisch ü"]).unwrap();
        assert_eq!(Announcement::new(1, &named).to_string(), "1;of=1;t=1");
    }

    #[test]
    fn what_is_not_understood_is_ignored_or_no_level() {
        let level = |value| Announcement::parse(value).map(|level| level.admitted());
        for good in [
            "2;of=4",
            " 2;of=4;lowest=\"a\\\"b\\\\\" ",
            "2; of=4; new; other=?0; t=3; bytes=:aGk=:; date=@1659578233; d=1.5; w=to/k:en; u=%\"f%c3%bc\"",
            "2;of=3;of=4",
        ] {
            assert_eq!(level(good), Some(2), "{good}");
        }
        for bad in [
            "",
            "2",
            "-1;of=4",
            "5;of=4",
            "2;of=0",
            "2;of=9",
            "2;of=4,3;of=4",
            "2;of=\"4\"",
            "x;of=4",
            "2.0;of=4",
            "2;of=4;lowest=low",
            "2;of=4;lowest=\"open",
            "2;of=4;t=-1",
            "2;of=4;T=1",
            "2 ;of=4",
            "2;of=4;t=soon",
            "2;of=4 x",
            "9999999999999999;of=4",
            "2;of=4;",
            "2;of=4;lowest=\"ü\"",
        ] {
            assert_eq!(level(bad), None, "{bad}");
        }
        let long = format!("2;of=4;lowest=\"{}\"", "a".repeat(256));
        assert_eq!(level(&long), None);
    }

    #[test]
    fn no_server_keeps_its_callers_away_for_long() {
        let level = Announcement::parse("0;of=4;t=999999999999999").unwrap();
        assert_eq!(level.lasts(), Duration::from_secs(60));
        assert_eq!(Announcement::parse("0;of=4").unwrap().lasts(), Duration::from_secs(1));
    }
}
