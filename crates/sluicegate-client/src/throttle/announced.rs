use std::time::Duration;

use http::{HeaderMap, HeaderName, header};
use sfv::visitor::ParameterVisitor;
use sfv::{BareItemFromInput, KeyRef, Parser};

use crate::outgoing::Context;

static ADMISSION: HeaderName = HeaderName::from_static("sluicegate-admission");

/// Longest time for which a level is believed.
const LONGEST: Duration = Duration::from_secs(60);

/// The level of admission that a server with `sluicegate-throttle` announces, such as `2;of=4;t=1`: how many of its
/// classes it admits, the most critical first, and for how long this is to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Announced {
    admitted: usize,
    classes: usize,
    pub(super) lasts: Duration,
}

impl Announced {
    /// What the response announces. A field that is malformed or was kept by a cache is none.
    pub(super) fn read(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(&ADMISSION).into_iter();
        let line = lines.next()?;
        if lines.next().is_some() || headers.contains_key(header::AGE) {
            return None;
        }
        let (admitted, parameters) =
            Parser::new(line.as_bytes()).parse_item_with_visitor(with_number).ok()?;
        let (admitted, classes) = (usize::try_from(admitted?).ok()?, parameters.classes?);
        let classes = usize::try_from(classes).ok()?;
        let seconds = u64::try_from(parameters.seconds.unwrap_or(1)).ok()?;
        let lasts = Duration::from_secs(seconds).min(LONGEST);
        (classes > 0 && admitted <= classes).then_some(Self { admitted, classes, lasts })
    }

    /// Whether a request of this context is admitted. Those of a class that is not known are left to the server.
    pub(super) fn admits(&self, context: Option<&Context>) -> bool {
        let rank = match context {
            Some(context) => context.rank(),
            None => Context::new().rank(),
        };
        rank.is_none_or(|rank| rank.min(self.classes - 1) < self.admitted)
    }
}

type Error = std::convert::Infallible;

fn with_number(item: BareItemFromInput<'_>) -> Result<Parameters, Error> {
    let level = match item {
        BareItemFromInput::Integer(number) => Some(i64::from(number)),
        _ => None,
    };
    Ok(Parameters { level, classes: None, seconds: None })
}

struct Parameters {
    level: Option<i64>,
    classes: Option<i64>,
    seconds: Option<i64>,
}

impl<'de> ParameterVisitor<'de> for Parameters {
    type Out = (Option<i64>, Self);
    type Error = Error;

    fn parameter(&mut self, key: &'de KeyRef, value: BareItemFromInput<'de>) -> Result<(), Error> {
        // What is no number is none: then the field says nothing.
        let number = match value {
            BareItemFromInput::Integer(number) => Some(i64::from(number)),
            _ => Some(-1),
        };
        match key.as_str() {
            "of" => self.classes = number,
            "t" => self.seconds = number,
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Self::Out, Error> {
        Ok((self.level, self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Announced> {
        let mut headers = HeaderMap::new();
        headers.insert(&ADMISSION, text.parse().unwrap());
        Announced::read(&headers)
    }

    #[test]
    fn the_level_says_which_classes_are_admitted() {
        let level = read(r#"2;of=4;lowest="CRITICAL";t=3"#).unwrap();
        assert_eq!(level.lasts, Duration::from_secs(3));
        let admits = |class: &'static str| level.admits(Some(&Context::new().criticality(class)));
        assert!(admits("CRITICAL_PLUS") && admits("critical") && level.admits(None));
        assert!(!admits("SHEDDABLE_PLUS") && !admits("SHEDDABLE"));
        assert!(admits("a class of its own"));
        assert!(!read("0;of=4").unwrap().admits(None));
        assert!(read("1;of=1").unwrap().admits(Some(&Context::new().criticality("SHEDDABLE"))));
    }

    #[test]
    fn what_is_no_level_says_nothing() {
        for text in [
            "",
            "2",
            "5;of=4",
            "-1;of=4",
            "2;of=0",
            "2;of=x",
            "2;of=4;t=-1",
            "a;of=4",
            "2;of=4,",
            "2.5;of=4",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read("2;of=4;t=999999999999999").unwrap().lasts, LONGEST);
    }
}
