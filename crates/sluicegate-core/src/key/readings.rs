use std::cell::OnceCell;

use super::PairReadings;
use super::path::PathReadings;

/// What rules have read of one request so far: the path, the query and the cookies in their parts. All rules of a request
/// share it, so the work for a long text does not grow with the number of rules.
///
/// A [`View`](super::View) owns one and lends it out. It belongs to what this view shows: a clone is empty, for the view of
/// another request.
#[derive(Debug, Default)]
pub struct Readings(OnceCell<AnyReadings>);

/// Made when the first rule reads one of them, because most rules read none.
#[derive(Debug, Default)]
pub(crate) struct AnyReadings {
    pub(crate) path: PathReadings,
    pub(crate) query: PairReadings,
    pub(crate) cookies: PairReadings,
}

impl Readings {
    /// Nothing is read yet.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    #[inline]
    pub(crate) fn get(&self) -> &AnyReadings {
        self.0.get_or_init(AnyReadings::default)
    }
}

impl Clone for Readings {
    fn clone(&self) -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::condition::Condition;
    use crate::key::path::steps;
    use crate::key::testing::Request;
    use crate::key::{Cookie, KeyBuf, MAX_PAIRS, MAX_PAIRS_LENGTH, Query};

    fn steps(work: impl FnOnce()) -> usize {
        let before = steps::steps();
        work();
        steps::steps() - before
    }

    /// The dearest text of this length: pairs that are encoded, and as many as are read.
    fn dear(separator: &str, length: usize) -> String {
        let pair = "%61".repeat((length / MAX_PAIRS).saturating_sub(4) / 6);
        (0..MAX_PAIRS).map(|_| format!("{pair}={pair}")).collect::<Vec<_>>().join(separator)
    }

    #[test]
    fn a_thousand_rules_read_a_query_and_its_cookies_once() {
        let query = Some(dear("&", MAX_PAIRS_LENGTH));
        let request = Request { query, ..Request::default() };
        let request = request.header("cookie", dear(";", MAX_PAIRS_LENGTH));
        let work = |rules: usize| {
            let request = Request {
                query: request.query.clone(),
                headers: request.headers.clone(),
                ..Request::default()
            };
            steps(|| {
                for rule in 0..rules {
                    let name = format!("name{rule}");
                    assert_eq!(Query(&name).equals("1").holds(&request), Ok(false));
                    assert_eq!(Cookie(name).is_present().holds(&request), Ok(false));
                }
            })
        };
        let (few, many) = (work(10), work(1_000));
        assert!(few > 2 * MAX_PAIRS_LENGTH, "{few}");
        assert!(many <= few + 2 * 1_000, "{few} and {many}");
    }

    #[test]
    fn a_thousand_rules_read_what_is_no_cookie_once() {
        let work = |line: &str, rules: usize| {
            let request = Request::default().header("cookie", line);
            steps(|| {
                for _ in 0..rules {
                    let _ = Cookie("name").is_present().holds(&request);
                }
            })
        };
        for line in ["a".repeat(60_000), ";".repeat(900), "a;".repeat(900) + "b=c"] {
            let (few, many) = (work(&line, 10), work(&line, 1_000));
            assert!(few >= line.len() && many <= few + 2 * 1_000, "{few} and {many}");
        }
        for line in ["a".repeat(MAX_PAIRS_LENGTH + 1), ";".repeat(MAX_PAIRS)] {
            let request = Request::default().header("cookie", line);
            let is_present = Cookie("name").is_present().holds(&request);
            assert!(is_present.is_err_and(|missing| missing.is_ambiguous()));
        }
    }

    #[test]
    fn more_pairs_or_bytes_than_are_read_are_the_clients_to_mend_for_every_rule() {
        let long = |length: usize| format!("a={}", "b".repeat(length - 1));
        for (query, is_read) in [
            ("&".repeat(MAX_PAIRS - 1), true),
            ("&".repeat(MAX_PAIRS), false),
            (long(MAX_PAIRS_LENGTH), true),
            (long(MAX_PAIRS_LENGTH + 1), false),
        ] {
            let cookies = query.replace('&', "x=;");
            let cookies = if cookies.ends_with(';') { cookies + "x=" } else { cookies };
            let request = Request { query: Some(query), ..Request::default() };
            let request = request.header("cookie", cookies);
            for _ in 0..3 {
                let read = [
                    Query("x").equals("1").holds(&request).map(drop),
                    Cookie("y").equals("1").holds(&request).map(drop),
                    KeyBuf::from_view(&Query("y"), &request).map(drop),
                    KeyBuf::from_view(&Cookie("y"), &request).map(drop),
                ];
                for result in read {
                    let is_too_much = result.is_err_and(|missing| missing.is_ambiguous());
                    assert_eq!(is_too_much, !is_read);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_reading_of_pairs_is_the_first(text in "([ab=&;+%\" ]|%6[12]){0,24}") {
            let request = || {
                let request = Request { query: Some(text.clone()), ..Request::default() };
                request.header("cookie", &text)
            };
            let again = request();
            // What others read is in order for the rest, once it was scanned often enough.
            for _ in 0..8 {
                for name in ["", "a", "b", "ab", " "] {
                    let fresh = request();
                    let query = |request| KeyBuf::from_view(&Query(name), request);
                    prop_assert_eq!(query(&fresh), query(&again));
                    let cookie = |request| KeyBuf::from_view(&Cookie(name), request);
                    prop_assert_eq!(cookie(&fresh), cookie(&again));
                    for value in ["", "a", "b=a"] {
                        let fresh = request();
                        let holds = |request| Query(name).equals(value).holds(request);
                        prop_assert_eq!(holds(&fresh), holds(&again));
                        let holds = |request| Cookie(name).equals(value).holds(request);
                        prop_assert_eq!(holds(&fresh), holds(&again));
                    }
                }
            }
        }
    }
}
