//! Reads the field as an Item of Structured Fields.

use std::error::Error;
use std::fmt;

use sfv::visitor::{ItemVisitor, ParameterVisitor};
use sfv::{BareItemFromInput, KeyRef, Parser};

use super::Announcement;
use crate::error::MAX_CLASSES;

/// Longest field that is read, in bytes.
const LONGEST: usize = 256;

/// Longest time for which a level is valid, in seconds. One response cannot keep callers away for longer.
const AT_MOST: u64 = 60;

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
        if value.len() > LONGEST {
            return None;
        }
        let Field { admitted, of, lowest, seconds } =
            Parser::new(value).parse_item_with_visitor(Field::default()).ok()?;
        let classes = of?;
        let is_level = (1..=MAX_CLASSES as u64).contains(&classes) && admitted <= classes;
        let seconds = seconds.unwrap_or(1).min(AT_MOST);
        is_level.then_some(Self {
            admitted: admitted as usize,
            classes: classes as usize,
            lowest,
            seconds,
        })
    }
}

/// The Integer of the item, and the parameters that have a meaning.
#[derive(Debug, Default)]
struct Field {
    admitted: u64,
    of: Option<u64>,
    lowest: Option<String>,
    seconds: Option<u64>,
}

impl<'de> ItemVisitor<'de> for Field {
    type Out = Self;
    type Error = Malformed;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = Self>, Malformed> {
        Ok(Self { admitted: number(&item)?, ..self })
    }
}

impl<'de> ParameterVisitor<'de> for Field {
    type Out = Self;
    type Error = Malformed;

    fn parameter(
        &mut self,
        key: &'de KeyRef,
        value: BareItemFromInput<'de>,
    ) -> Result<(), Malformed> {
        match (key.as_str(), value) {
            ("of", of) => self.of = Some(number(&of)?),
            ("t", time) => self.seconds = Some(number(&time)?),
            ("lowest", BareItemFromInput::String(name)) => {
                self.lowest = Some(name.into_owned().into());
            }
            ("lowest", _) => return Err(Malformed),
            // Unknown parameters are ignored.
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Self, Malformed> {
        Ok(self)
    }
}

fn number(item: &BareItemFromInput<'_>) -> Result<u64, Malformed> {
    match item {
        BareItemFromInput::Integer(number) => {
            u64::try_from(i64::from(*number)).map_err(|_| Malformed)
        }
        _ => Err(Malformed),
    }
}

/// The error carries no reason, because nothing reads it.
#[derive(Debug)]
struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a level of admission")
    }
}

impl Error for Malformed {}
