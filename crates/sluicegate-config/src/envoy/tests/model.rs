//! Rules decide like the service's own lookup, which is repeated here as in its source.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{headers, policies};
use sluicegate_tests::Request;

const KEYS: [&str; 2] = ["a", "b"];
const VALUES: [&str; 7] = ["x", "y", "xy", "x*", "*y", "x*y", "*"];
const SENT: [&str; 5] = ["x", "y", "xy", "xzy", "z"];
const NAMES: [&str; 2] = ["one", "two"];

#[derive(Debug, Clone)]
struct Node {
    key: &'static str,
    value: Option<&'static str>,
    limit: Option<Limit>,
    shared: bool,
    below: Vec<Self>,
}

#[derive(Debug, Clone)]
struct Limit {
    /// Identifies the limit; `None` is no limit at all.
    count: Option<u64>,
    name: Option<&'static str>,
    replaces: Option<&'static str>,
}

/// What a request reaches: the limit, and the values of its counter.
type Met = (u64, Vec<String>);

fn limit() -> impl Strategy<Value = Limit> {
    let name = || option::of(prop::sample::select(&NAMES[..]));
    (prop::bool::weighted(0.9), name(), name()).prop_map(|(counts, name, replaces)| Limit {
        count: counts.then_some(0),
        name,
        replaces: replaces.filter(|replaced| Some(*replaced) != name),
    })
}

fn level(below: impl Strategy<Value = Vec<Node>>) -> impl Strategy<Value = Vec<Node>> {
    let value = option::of(prop::sample::select(&VALUES[..]));
    let key = prop::sample::select(&KEYS[..]);
    let node = (key, value, option::weighted(0.8, limit()), any::<bool>(), below);
    let node = node.prop_map(|(key, value, limit, shared, below)| {
        let shared = shared && value.is_some_and(|value| value.contains('*'));
        Node { key, value, limit, shared, below }
    });
    vec(node, 0..6).prop_map(|mut nodes| {
        let mut seen = std::collections::HashSet::new();
        nodes.retain(|node| seen.insert((node.key, node.value)));
        nodes
    })
}

fn trees() -> impl Strategy<Value = Vec<Node>> {
    level(level(Just(Vec::new()))).prop_map(|mut nodes| {
        number(&mut nodes, &mut 0);
        nodes
    })
}

fn number(nodes: &mut [Node], next: &mut u64) {
    for node in nodes {
        if let Some(count) = node.limit.as_mut().and_then(|limit| limit.count.as_mut()) {
            *next += 1;
            *count = *next;
        }
        number(&mut node.below, next);
    }
}

fn requests() -> impl Strategy<Value = [Option<&'static str>; 2]> {
    let sent = || option::weighted(0.8, prop::sample::select(&SENT[..]));
    [sent(), sent()]
}

fn write(nodes: &[Node], indent: usize, text: &mut String) {
    let space = " ".repeat(indent);
    for node in nodes {
        text.push_str(&format!("{space}- key: {}\n", node.key));
        if let Some(value) = node.value {
            text.push_str(&format!("{space}  value: '{value}'\n"));
        }
        if node.shared {
            text.push_str(&format!("{space}  share_threshold: true\n"));
        }
        if let Some(Limit { count, name, replaces }) = &node.limit {
            let rate = match count {
                Some(count) => format!("unit: minute, requests_per_unit: {count}"),
                None => "unlimited: true".to_owned(),
            };
            let name = name.map(|name| format!(", name: {name}")).unwrap_or_default();
            let replaces = replaces.map(|name| format!(", replaces: [{{ name: {name} }}]"));
            let replaces = replaces.unwrap_or_default();
            text.push_str(&format!("{space}  rate_limit: {{ {rate}{name}{replaces} }}\n"));
        }
        if !node.below.is_empty() {
            text.push_str(&format!("{space}  descriptors:\n"));
            write(&node.below, indent + 2, text);
        }
    }
}

/// Every list of keys that leads to a limit.
fn descriptors(nodes: &[Node], way: &[&'static str], found: &mut Vec<Vec<&'static str>>) {
    for node in nodes {
        let way = [way, &[node.key]].concat();
        if node.limit.is_some() && !found.contains(&way) {
            found.push(way.clone());
        }
        descriptors(&node.below, &way, found);
    }
}

/// The service's `GetLimit`: at each level the exact value, otherwise the first wildcard that matches, otherwise the
/// key without a value. The limit has to be where the descriptor ends.
fn lookup<'n>(nodes: &'n [Node], entries: &[(&str, &str)]) -> Option<(&'n Limit, Vec<String>)> {
    let mut level = nodes;
    let mut counter = Vec::new();
    for (at, (key, value)) in entries.iter().enumerate() {
        let of_key = || level.iter().filter(|node| node.key == *key);
        let exact = of_key().find(|node| node.value == Some(*value));
        let wild = || of_key().find(|node| node.value.is_some_and(|own| is_like(own, value)));
        let bare = || of_key().find(|node| node.value.is_none());
        let node = exact.or_else(wild).or_else(bare)?;
        counter.push(match node.value {
            Some(pattern) if node.shared => pattern.to_owned(),
            _ => (*value).to_owned(),
        });
        if at + 1 == entries.len() {
            return node.limit.as_ref().map(|limit| (limit, counter));
        }
        level = &node.below;
    }
    None
}

/// Written in another way than the code under test.
fn is_like(pattern: &str, text: &str) -> bool {
    match (pattern.split_at_checked(1), text.split_at_checked(1)) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some(("*", rest)), None) => is_like(rest, text),
        (Some(("*", rest)), Some((_, later))) => is_like(rest, text) || is_like(pattern, later),
        (Some(_), None) => false,
        (Some((own, rest)), Some((other, later))) => own == other && is_like(rest, later),
    }
}

fn expected(nodes: &[Node], sent: &[Option<&'static str>; 2]) -> Vec<Met> {
    let mut found = Vec::new();
    descriptors(nodes, &[], &mut found);
    let value = |key: &str| sent[KEYS.iter().position(|own| *own == key).expect("two keys")];
    let entries = found.iter().filter_map(|keys| {
        keys.iter().map(|key| Some((*key, value(key)?))).collect::<Option<Vec<_>>>()
    });
    let met: Vec<_> = entries.filter_map(|entries| lookup(nodes, &entries)).collect();
    let replaced: Vec<_> = met.iter().filter_map(|(limit, _)| limit.replaces).collect();
    let mut left: Vec<Met> = met
        .into_iter()
        .filter(|(limit, _)| limit.name.is_none_or(|name| !replaced.contains(&name)))
        .filter_map(|(limit, counter)| Some((limit.count?, counter)))
        .collect();
    left.sort();
    left
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_request_meets_the_limits_that_the_service_would_find(
        nodes in trees(),
        requests in vec(requests(), 1..8),
    ) {
        let mut text = "domain: test\ndescriptors:\n".to_owned();
        write(&nodes, 2, &mut text);
        let policies = policies(&text, &headers(&KEYS));
        let mut seen = Vec::new();
        for sent in &requests {
            let with = |request: Request, (key, value): (&str, &Option<&str>)| match value {
                Some(value) => request.header(key, value),
                None => request,
            };
            let request = KEYS.into_iter().zip(sent).fold(Request::default(), with);
            let charge = request.charge(&policies);
            let mut debit: Vec<_> =
                charge.debits().map(|debit| (debit.limit.capacity(), debit.key)).collect();
            debit.sort_by_key(|(count, _)| *count);
            let expected = expected(&nodes, sent);
            let counts = |list: &[Met]| list.iter().map(|(count, _)| *count).collect::<Vec<_>>();
            prop_assert_eq!(
                debit.iter().map(|(count, _)| *count).collect::<Vec<_>>(),
                counts(&expected),
                "{:?} of\n{}", sent, text
            );
            seen.extend(expected.into_iter().zip(debit).map(|(met, (_, key))| (met, key)));
        }
        // Each counter of the service is one counter here.
        for (met, key) in &seen {
            for (other, other_key) in &seen {
                prop_assert_eq!(met == other, key == other_key, "{:?} {:?}\n{}", met, other, text);
            }
        }
    }
}
