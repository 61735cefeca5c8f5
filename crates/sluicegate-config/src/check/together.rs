//! Rules that one request can meet together.
//!
//! A request has one method, host, route and path. So rules that name different ones never meet, and a file with a hundred
//! thousand of these is as good as one with a single rule. Everything else that a condition asks may hold for all of them.

use std::collections::{BTreeMap, BTreeSet};

use sluicegate_core::limit::MAX_LIMITS;

use crate::document::{Condition, Texts};

/// The most steps of the search. A file of 100,000 rules takes fewer than a million. Only patterns with many placeholders
/// beside many literal segments take more.
const MOST_STEPS: usize = 10_000_000;

/// What was found in the rules of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Together {
    /// No request meets more limits than one request can be charged to.
    Few,
    /// A request can meet these rules, which have more.
    Many(Vec<usize>),
    /// The rules are too many to find out.
    Unknown,
}

/// Looks for rules that one request can meet, with more limits together than one request can be charged to. Each rule is its
/// condition and the number of its limits.
pub(super) fn together<'a>(
    rules: impl Iterator<Item = (Option<&'a Condition>, usize)>,
) -> Together {
    let mut entries = Vec::new();
    for (rule, (when, limits)) in rules.enumerate() {
        let any = Entry { rule, limits, ..Entry::default() };
        match when {
            Some(when) => any.add(when, &mut entries),
            None => entries.push(any),
        }
    }
    let mut search = Search { left: MOST_STEPS };
    let all: Vec<_> = entries.iter().collect();
    match search.by_method(&all) {
        Ok(()) => Together::Few,
        Err(Stop::Found(rules)) => Together::Many(rules),
        Err(Stop::TooLong) => Together::Unknown,
    }
}

/// What a request has to be to meet a rule. `None` is any.
#[derive(Debug, Clone, Default)]
struct Entry<'a> {
    rule: usize,
    limits: usize,
    method: Option<&'a Texts>,
    host: Option<&'a Texts>,
    route: Option<&'a Texts>,
    path: Option<&'a Texts>,
}

impl<'a> Entry<'a> {
    /// Adds what `when` asks: an entry for each of its alternatives.
    fn add(self, when: &'a Condition, entries: &mut Vec<Self>) {
        let both = Self {
            method: self.method.or(when.method.as_ref()),
            host: self.host.or(when.host.as_ref()),
            route: self.route.or(when.route.as_ref()),
            path: self.path.or(when.path.as_ref()),
            ..self
        };
        if when.any.is_empty() {
            entries.push(both);
        } else {
            when.any.iter().for_each(|any| both.clone().add(any, entries));
        }
    }
}

type Entries<'e, 'a> = [&'e Entry<'a>];

/// Why a search ends early.
enum Stop {
    Found(Vec<usize>),
    TooLong,
}

struct Search {
    /// How many steps are left.
    left: usize,
}

impl Search {
    fn by_method(&mut self, entries: &Entries<'_, '_>) -> Result<(), Stop> {
        let also = |method: &str, named: &mut dyn FnMut(&str)| {
            named(method);
            // `GET` is also `HEAD`.
            if method == "HEAD" {
                named("GET");
            }
        };
        self.each(entries, |entry| entry.method, str::to_owned, also, Self::by_host)
    }

    fn by_host(&mut self, entries: &Entries<'_, '_>) -> Result<(), Stop> {
        let also = |host: &str, named: &mut dyn FnMut(&str)| {
            named(host);
            let name = host.strip_prefix('*').unwrap_or(host);
            // `a.b.c` is below `b.c` and `c`.
            let dots = name.bytes().enumerate().filter(|(at, byte)| *byte == b'.' && *at > 0);
            dots.for_each(|(dot, _)| named(&format!("*{}", &name[dot..])));
        };
        self.each(entries, |entry| entry.host, plain, also, Self::by_route)
    }

    fn by_route(&mut self, entries: &Entries<'_, '_>) -> Result<(), Stop> {
        let also = |route: &str, named: &mut dyn FnMut(&str)| named(route);
        self.each(entries, |entry| entry.route, str::to_owned, also, Self::by_path)
    }

    /// Goes on with the entries that any one value meets. `also` names each text of entries that a value meets.
    fn each<'a>(
        &mut self,
        entries: &Entries<'_, 'a>,
        of: impl Fn(&Entry<'a>) -> Option<&'a Texts>,
        plain: impl Fn(&str) -> String,
        also: impl Fn(&str, &mut dyn FnMut(&str)),
        next: impl Fn(&mut Self, &Entries<'_, 'a>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut rest = Vec::new();
        let mut named = BTreeMap::<String, Vec<_>>::new();
        for entry in entries {
            match of(entry) {
                None => rest.push(*entry),
                Some(texts) => {
                    for text in texts.as_slice() {
                        self.step(1)?;
                        named.entry(plain(text)).or_default().push(*entry);
                    }
                }
            }
        }
        if named.is_empty() {
            return if is_many(&rest) { next(self, &rest) } else { Ok(()) };
        }
        for text in named.keys() {
            let mut met = Vec::new();
            also(text, &mut |text| met.extend(named.get(text).into_iter().flatten()));
            if limits(&rest) + limits(&met) > MAX_LIMITS {
                self.step(rest.len() + met.len())?;
                met.extend(&rest);
                next(self, &met)?;
            }
        }
        Ok(())
    }

    /// Goes down the segments of all patterns at once, as far as many of them go together.
    fn by_path(&mut self, entries: &Entries<'_, '_>) -> Result<(), Stop> {
        let mut met = Vec::new();
        let mut open = Vec::new();
        for entry in entries {
            match entry.path {
                None => met.push(*entry),
                Some(texts) => {
                    let texts = texts.as_slice().iter();
                    open.extend(texts.map(|text| (*entry, text.trim_matches('/'))));
                }
            }
        }
        let mut places = vec![(met, open)];
        while let Some((mut met, open)) = places.pop() {
            self.step(met.len() + open.len())?;
            let (mut ended, mut any) = (Vec::new(), Vec::new());
            let mut named = BTreeMap::<&str, Vec<_>>::new();
            for (entry, pattern) in open {
                let (segment, behind) = pattern.split_once('/').unwrap_or((pattern, ""));
                let behind = behind.trim_start_matches('/');
                match segment {
                    "" => ended.push(entry),
                    _ if segment == "*" || segment.starts_with("{*") => met.push(entry),
                    _ if segment.starts_with('{') => any.push((entry, behind)),
                    _ => named.entry(segment).or_default().push((entry, behind)),
                }
            }
            ended.extend(&met);
            found(&ended)?;
            let so_far = limits(&met) + any.iter().map(|(entry, _)| entry.limits).sum::<usize>();
            if named.is_empty() && !any.is_empty() && so_far > MAX_LIMITS {
                places.push((met, any));
                continue;
            }
            for (_, mut open) in named {
                if so_far + open.iter().map(|(entry, _)| entry.limits).sum::<usize>() > MAX_LIMITS {
                    self.step(met.len() + any.len())?;
                    open.extend(&any);
                    places.push((met.clone(), open));
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, steps: usize) -> Result<(), Stop> {
        self.left = self.left.checked_sub(steps).ok_or(Stop::TooLong)?;
        Ok(())
    }
}

/// A host without what does not matter.
fn plain(host: &str) -> String {
    let end = host.find(']').map_or(0, |end| end + 1);
    let name = host[end..].find(':').map_or(host, |colon| &host[..end + colon]);
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// How many limits the entries have, where one rule may be there several times.
fn limits(entries: &Entries<'_, '_>) -> usize {
    entries.iter().map(|entry| entry.limits).sum()
}

fn is_many(entries: &Entries<'_, '_>) -> bool {
    limits(entries) > MAX_LIMITS
}

/// Stops if these rules have too many limits.
fn found(entries: &Entries<'_, '_>) -> Result<(), Stop> {
    if !is_many(entries) {
        return Ok(());
    }
    let rules: BTreeSet<_> = entries.iter().map(|entry| (entry.rule, entry.limits)).collect();
    if rules.iter().map(|(_, limits)| limits).sum::<usize>() <= MAX_LIMITS {
        return Ok(());
    }
    Err(Stop::Found(rules.into_iter().map(|(rule, _)| rule).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `count` rules with the conditions of these texts, in turn, are too many for one request.
    fn are_many(count: usize, when: impl Fn(usize) -> String) -> bool {
        let rules: Vec<Condition> =
            (0..count).map(|rule| toml::from_str(&when(rule)).expect("a condition")).collect();
        match together(rules.iter().map(|when| (Some(when), 1))) {
            Together::Few => false,
            Together::Many(_) => true,
            Together::Unknown => panic!("too many"),
        }
    }

    #[test]
    fn rules_that_no_request_meets_together_are_few() {
        assert!(!are_many(100_000, |at| format!("path = \"/tenants/{at}/*\"")));
        assert!(!are_many(100_000, |at| format!("host = \"*.t{at}.example\"")));
        assert!(!are_many(100_000, |at| format!("route = \"/{at}/{{id}}\"")));
        assert!(!are_many(40, |at| format!("method = \"M{at}\"\npath = \"/*\"")));
        assert!(!are_many(40, |at| format!(
            "any = [{{ host = \"a{at}\" }}, {{ path = \"/{at}\" }}]"
        )));
        assert!(!are_many(40, |at| format!("path = \"{}\"", "/{id}".repeat(at + 1))));
        // A rule of many patterns is one rule.
        assert!(!are_many(16, |_| "path = [\"/a/*\", \"/a/{id}\", \"/a/b\"]".to_owned()));
    }

    #[test]
    fn rules_that_one_request_meets_together_are_many() {
        assert!(are_many(17, |at| format!("header = {{ x = \"{at}\" }}")));
        assert!(are_many(17, |at| format!("path = \"{}*\"", "/a".repeat(at) + "/")));
        assert!(are_many(17, |at| format!("path = \"/a/{}\"", ["b", "{id}", "*"][at % 3])));
        assert!(are_many(17, |at| format!("path = \"{}\"", ["/{x}/b", "/a/{y}/"][at % 2])));
        assert!(are_many(17, |at| format!("host = \"{}\"", ["*.b.c", "A.b.c:80", "*.c"][at % 3])));
        assert!(are_many(17, |at| format!("host = \"{}\"", ["*.b.c", "*.c"][at % 2])));
        assert!(are_many(17, |at| format!("method = \"{}\"", ["GET", "HEAD"][at % 2])));
        assert!(are_many(17, |at| match at % 2 {
            0 => "method = \"GET\"".to_owned(),
            _ => "path = \"/login\"".to_owned(),
        }));
        // In each place of the list.
        let one = |at: usize| format!("path = [\"/{at}\", \"/all\"]");
        assert!(are_many(17, one) && !are_many(16, one));
    }
}
