//! Groups of paths: `/login`, `/api/search`. What is beneath them, and what names a thing and not a kind, counts with them.

use std::collections::HashMap;

use super::client::Arrival;
use super::population::Population;

/// As many requests tell which groups there are.
const FIRST: usize = 100_000;

/// Most names of groups among them: scanners ask for what does not exist.
const NAMES: usize = 4_096;

/// Most groups that are looked at apart.
const GROUPS: usize = 8;

/// Most clients of a group who are followed.
const CLIENTS: usize = 1 << 15;

/// The group of a path. It is the beginning of the path.
pub(crate) fn group_of(path: &str) -> &str {
    let mut end = 0;
    // Segments such as `api` and `v1` are of everything, so one more counts.
    for _ in 0..3 {
        let Some(rest) = path[end..].strip_prefix('/') else { break };
        let len = rest.find('/').unwrap_or(rest.len());
        let segment = &rest[..len];
        let is_last = len == rest.len();
        let is_file = is_last && segment.contains('.');
        if segment.is_empty() || is_file || names_a_thing(segment) {
            break;
        }
        end += 1 + len;
        if !is_general(segment) {
            break;
        }
    }
    if end == 0 { "/" } else { &path[..end] }
}

/// Whether a segment is of everything, such as `api` and `v1`.
fn is_general(segment: &str) -> bool {
    let version = segment.strip_prefix('v');
    segment == "api"
        || version.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether the paths of a group are all that a rule for it would limit. Beneath `/api`, other groups are counted apart.
fn is_whole(group: &str) -> bool {
    let last = group.rsplit('/').next().unwrap_or_default();
    !last.is_empty() && !is_general(last)
}

/// Whether a segment is rather a number or an identity than a word.
fn names_a_thing(segment: &str) -> bool {
    let digits = segment.bytes().filter(u8::is_ascii_digit).count();
    let is_version = segment.len() <= 3 && segment.starts_with('v');
    !is_version
        && (digits * 2 > segment.len()
            || segment.len() > 32
            || (digits >= 4 && segment.len() >= 16))
}

/// The groups that have many of the first requests, each with its clients.
pub(super) struct Groups {
    names: HashMap<String, Name>,
    first: Vec<(u64, Arrival, u16)>,
    is_chosen: bool,
    pub(super) populations: Vec<(String, Population)>,
}

struct Name {
    number: u16,
    requests: u64,
    /// The place among the populations.
    place: Option<usize>,
}

impl Groups {
    pub(super) fn new() -> Self {
        Self { names: HashMap::new(), first: Vec::new(), is_chosen: false, populations: Vec::new() }
    }

    #[inline]
    pub(super) fn add(&mut self, group: &str, key: u64, arrival: Arrival) {
        if self.is_chosen {
            if let Some(place) = self.names.get(group).and_then(|name| name.place) {
                self.populations[place].1.add(key, arrival);
            }
            return;
        }
        if !self.names.contains_key(group) && self.names.len() < NAMES {
            let number = self.names.len() as u16;
            self.names.insert(group.to_owned(), Name { number, requests: 0, place: None });
        }
        if let Some(name) = self.names.get_mut(group) {
            name.requests += 1;
            self.first.push((key, arrival, name.number));
        }
        if self.first.len() >= FIRST {
            self.choose();
        }
    }

    /// Chooses the groups with the most requests, each with 0.1 % of them at least.
    pub(super) fn choose(&mut self) {
        if std::mem::replace(&mut self.is_chosen, true) {
            return;
        }
        let first = std::mem::take(&mut self.first);
        let enough = (first.len() as u64).div_ceil(1_000).max(20);
        // What a pattern of a rule can say without a word on its own signs.
        let is_plain = |path: &str| {
            path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte))
        };
        self.names.retain(|path, name| name.requests >= enough && is_plain(path) && is_whole(path));
        let mut chosen: Vec<_> = self.names.iter_mut().collect();
        chosen.sort_by(|(path, one), (other, another)| {
            another.requests.cmp(&one.requests).then(path.cmp(other))
        });
        let mut places = HashMap::new();
        for (place, (path, name)) in chosen.into_iter().take(GROUPS).enumerate() {
            name.place = Some(place);
            places.insert(name.number, place);
            self.populations.push((path.clone(), Population::new(CLIENTS)));
        }
        self.names.retain(|_, name| name.place.is_some());
        for (key, arrival, number) in first {
            if let Some(place) = places.get(&number) {
                self.populations[*place].1.add(key, arrival);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_the_first_word_that_says_something() {
        for (path, expected) in [
            ("/", "/"),
            ("", "/"),
            ("/logo.png", "/"),
            ("/login", "/login"),
            ("/users/7/posts", "/users"),
            ("/7/posts", "/"),
            ("/api", "/api"),
            ("/api/v1/search/x", "/api/v1/search"),
            ("/api/v1/v2/search/x", "/api/v1/v2"),
            ("/v1/7d444840-9dc0-11d1-b245-5ffdce74fad2", "/v1"),
            ("//x", "/"),
            ("*", "/"),
            ("/straße/ö", "/straße"),
        ] {
            assert_eq!(group_of(path), expected, "{path}");
        }
    }
}
