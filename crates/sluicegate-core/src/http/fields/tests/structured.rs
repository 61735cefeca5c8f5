//! Any decision's fields are what RFC 9651 calls a List, with the draft's parameters.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, PartialEq)]
enum Item {
    Integer(u64),
    Text(String),
    True,
}

/// One member: its name and its parameters.
type Member = (String, Vec<(String, Item)>);

/// A reader for lists of strings with parameters, as the RFC's section 4.2 tells to write one.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn list(text: &str) -> Option<Vec<Member>> {
        assert!(text.is_ascii());
        let mut reader = Reader(text.as_bytes());
        let mut members = Vec::new();
        if text.is_empty() {
            return Some(members);
        }
        loop {
            let Item::Text(name) = reader.item()? else { return None };
            members.push((name, reader.parameters()?));
            reader.skip(b" \t");
            if reader.0.is_empty() {
                return Some(members);
            }
            reader.expect(b',')?;
            reader.skip(b" \t");
        }
    }

    fn parameters(&mut self) -> Option<Vec<(String, Item)>> {
        let mut parameters: Vec<(String, Item)> = Vec::new();
        while self.expect(b';').is_some() {
            self.skip(b" ");
            let key = self.key()?;
            let value = if self.expect(b'=').is_some() { self.item()? } else { Item::True };
            assert!(parameters.iter().all(|(before, _)| *before != key), "{key} twice");
            parameters.push((key, value));
        }
        Some(parameters)
    }

    fn key(&mut self) -> Option<String> {
        let first = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'*';
        let other = |byte: &u8| first(byte) || byte.is_ascii_digit() || b"_-.".contains(byte);
        self.0.first().filter(|byte| first(byte))?;
        let end = self.0.iter().position(|byte| !other(byte)).unwrap_or(self.0.len());
        let (key, rest) = self.0.split_at(end);
        self.0 = rest;
        String::from_utf8(key.to_vec()).ok()
    }

    fn item(&mut self) -> Option<Item> {
        if self.expect(b'"').is_some() {
            return self.text().map(Item::Text);
        }
        let end = self.0.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() <= 15)?;
        digits.parse().ok().map(Item::Integer)
    }

    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            match byte {
                b'"' => return Some(text),
                b'\\' => {
                    let (escaped, rest) = self.0.split_first()?;
                    self.0 = rest;
                    text.push(Some(*escaped).filter(|byte| b"\"\\".contains(byte))?.into());
                }
                b' '..=b'~' => text.push((*byte).into()),
                _ => return None,
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    fn skip(&mut self, bytes: &[u8]) {
        let blank = self.0.iter().take_while(|byte| bytes.contains(byte)).count();
        self.0 = &self.0[blank..];
    }
}

fn parameter<'a>(member: &'a Member, key: &str) -> Option<&'a Item> {
    member.1.iter().find(|(name, _)| name == key).map(|(_, item)| item)
}

/// As a proxy or a client would read it.
#[test]
fn the_reader_knows_a_list_from_what_is_none() {
    let read =
        Reader::list(r#""burst";q=100;w=60,"daily \"\\";q=1;sluicegate-soft"#).expect("a list");
    assert_eq!(read[0].0, "burst");
    assert_eq!(read[1].0, r#"daily "\"#);
    assert_eq!(parameter(&read[0], "w"), Some(&Item::Integer(60)));
    assert_eq!(parameter(&read[1], "sluicegate-soft"), Some(&Item::True));
    for none in [r#""a";Q=1"#, r#""a"q=1"#, r#""a";q=1234567890123456"#, r#""a"#, r#""a","#, "5"] {
        assert_eq!(Reader::list(none), None, "{none}");
    }
}

fn limit() -> impl Strategy<Value = Limit> {
    let period = prop_oneof![
        (1_u64..5_000_000).prop_map(Duration::from_micros),
        (1_u64..100_000).prop_map(Duration::from_secs),
    ];
    let made =
        (0_usize..7, 1_u64..1_000, period).prop_filter_map("exact", |(kind, count, period)| {
            match kind {
                0 => Limit::try_per(count, period),
                1 => {
                    Limit::try_per(count, period).and_then(|limit| limit.try_refill(count, period))
                }
                2 => {
                    Limit::try_leaky_bucket(count, period).and_then(|limit| limit.try_queue(count))
                }
                3 => Limit::try_fixed_window(count, period),
                4 => Limit::try_sliding_log(count, period),
                5 => Limit::try_sliding_window(count, period),
                _ => Limit::try_concurrent(count),
            }
            .ok()
        });
    let name = prop::option::of("[ -~]{1,31}");
    (made, name, prop::bool::ANY, prop::option::of(1_u64..100)).prop_map(
        |(limit, name, soft, ban)| {
            let limit = name.map_or(limit, |name| limit.named(&name));
            let limit = ban.map_or(limit, |ban| limit.ban(Duration::from_secs(ban)));
            if soft { limit.soft(limit.capacity() / 2) } else { limit }
        },
    )
}

proptest! {
    #[test]
    fn every_decision_s_fields_can_be_read(
        limits in prop::collection::vec(limit(), 0..5),
        costs in prop::collection::vec((0_u64..600, 0_u64..4_000_000), 1..20),
    ) {
        let mut states = vec![State::default(); limits.len()];
        let mut now = 946_684_800_000_000;
        for (cost, passed) in costs {
            now += passed;
            let attempts = limits.iter().zip(&mut states);
            let mut attempts: Vec<_> =
                attempts.map(|(limit, state)| Attempt { limit, state, cost }).collect();
            let decision = decide(&mut attempts, now, None, crate::limit::Keys::One);

            let policies = Reader::list(&rate_limit_policy(&decision)).expect("a list");
            prop_assert_eq!(policies.len(), limits.len());
            for (policy, limit) in policies.iter().zip(&limits) {
                prop_assert_eq!(&policy.0, &limit.name().to_string());
                prop_assert_eq!(parameter(policy, "q"), Some(&Item::Integer(limit.count())));
                prop_assert_ne!(parameter(policy, "w"), Some(&Item::Integer(0)));
            }

            let wait = retry_after(&decision);
            prop_assert!(wait >= 1);
            if let Some(retry_after) = decision.retry_after() {
                prop_assert!(Duration::from_secs(wait) >= retry_after);
            }
            for member in Reader::list(&rate_limit(&decision)).expect("a list") {
                prop_assert!(matches!(parameter(&member, "r"), Some(Item::Integer(_))));
                match parameter(&member, "t") {
                    None => {}
                    Some(Item::Integer(window)) if decision.is_admitted() || *window <= wait => {}
                    other => prop_assert!(false, "t={:?} after Retry-After: {}", other, wait),
                }
            }
        }
    }
}
