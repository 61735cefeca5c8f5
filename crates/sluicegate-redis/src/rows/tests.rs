use std::collections::HashMap;

use sluicegate_core::Limit;
use sluicegate_core::key::KeyBuf;

use super::*;

const LIMIT: Limit = Limit::per_minute(100);

fn naming() -> Naming {
    Naming::new("sluicegate:").unwrap()
}

fn key(parts: &[&[u8]]) -> KeyBuf {
    let mut key = KeyBuf::new();
    parts.iter().for_each(|part| key.push(part));
    key
}

fn named(naming: &Naming, parts: &[&[u8]]) -> String {
    String::from_utf8(row_key(naming, &key(parts), &LIMIT)).unwrap()
}

/// Parts that are easily confused.
fn awkward() -> Vec<Vec<Vec<u8>>> {
    let bytes =
        [b"", &b"a"[..], b"b", b",", b"%", b"%2c", b"2c", b"{", b"}", b"*", b"#", b"$", b"\0"];
    let long = [vec![b'a'; 80], vec![b'a'; 81], vec![b'}'; 200], vec![0xff; 33]];
    let parts: Vec<Vec<u8>> = bytes.iter().map(|part| part.to_vec()).chain(long).collect();
    let mut keys = vec![vec![]];
    for a in &parts {
        keys.push(vec![a.clone()]);
        for b in &parts {
            keys.push(vec![a.clone(), b.clone()]);
            keys.push(vec![[&a[..], b].concat()]);
            keys.push(vec![[&a[..], b","].concat(), b.clone()]);
        }
    }
    keys.extend((3..20).map(|count| vec![vec![]; count]));
    keys
}

fn all_keys() -> Vec<KeyBuf> {
    let of = |parts: Vec<Vec<u8>>| key(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
    awkward().into_iter().map(of).collect()
}

#[test]
fn a_row_is_named_after_its_key_and_limit() {
    let id = format!("{:016x}", LIMIT.id());
    assert_eq!(named(&naming(), &[b"alice"]), format!("sluicegate:{{alice}}{id}"));
    assert_eq!(named(&naming(), &[b"ab", b"c"]), format!("sluicegate:{{ab,c}}{id}"));
    assert_eq!(named(&naming(), &[b"\x0b", b"{}"]), format!("sluicegate:{{%0b,%7b%7d}}{id}"));
    assert_eq!(named(&naming(), &[]), format!("sluicegate:{{*}}{id}"));
    assert_eq!(named(&naming(), &[b""]), format!("sluicegate:{{%}}{id}"));
    let long = named(&naming(), &[&[b'a'; 81], b"b"]);
    assert!(long.starts_with("sluicegate:{#") && long.ends_with(&format!(",b}}{id}")), "{long}");
}

#[test]
fn two_keys_never_share_a_row() {
    for naming in [naming(), naming().secret(b"secret")] {
        let mut seen = HashMap::new();
        for key in all_keys() {
            let row = row_key(&naming, &key, &LIMIT);
            let other = seen.insert(row.clone(), key).unwrap_or(key);
            assert!(other == key, "two keys share {}", String::from_utf8_lossy(&row));
        }
        assert!(seen.len() > 500);
    }
}

#[test]
fn two_limits_never_share_a_row() {
    let alice = KeyBuf::of("alice");
    let row = |limit: Limit| row_key(&naming(), &alice, &limit);
    assert_ne!(row(LIMIT), row(Limit::per_minute(101)));
    assert_ne!(row(LIMIT), row(LIMIT.named("api")));
    assert_eq!(row(LIMIT.named("api")), row(LIMIT.named("api").burst(7)));
}

#[test]
fn the_hash_tag_ends_where_it_should() {
    for naming in [naming(), naming().secret(b"secret"), Naming::new("}a:").unwrap()] {
        for key in all_keys() {
            let row = String::from_utf8(row_key(&naming, &key, &LIMIT)).unwrap();
            assert!(row.bytes().all(|byte| byte.is_ascii_graphic()), "{row}");
            assert_eq!(row.matches('{').count(), 1, "{row}");
            let (_, tag) = row.split_once('{').unwrap();
            let (tag, id) = tag.split_once('}').unwrap();
            assert!(!tag.is_empty(), "nothing would make the whole name the tag: {row}");
            assert_eq!(id, format!("{:016x}", LIMIT.id()));
        }
    }
}

#[test]
fn all_limits_of_one_key_share_a_slot() {
    for key in all_keys() {
        let slot = |limit: Limit| slot(&row_key(&naming(), &key, &limit));
        assert_eq!(slot(LIMIT), slot(Limit::concurrent(3)));
    }
}

#[test]
fn slots_are_those_of_redis_cluster() {
    // As `CLUSTER KEYSLOT` answers.
    assert_eq!(slot(b"123456789"), 0x31c3);
    assert_eq!(slot(b"foo"), 12_182);
    assert_eq!(slot(b"bar"), 5_061);
    assert_eq!(slot(b"a{foo}b"), 12_182);
    assert_eq!(slot(b"a{foo}{bar}"), 12_182);
    assert_eq!(slot(b"foo{}{bar}"), 8_363);
    assert_eq!(slot(b"foo{{bar}}zap"), 4_015);
    assert_eq!(slot(b""), 0);
}

#[test]
fn a_secret_keeps_the_key_out_of_the_name_and_out_of_what_is_shown() {
    let (one, other) = (naming().secret(b"one"), naming().secret(b"other"));
    let row = named(&one, &[b"alice"]);
    assert!(!row.contains("alice"), "{row}");
    assert_eq!(row, named(&one, &[b"alice"]));
    assert_ne!(row, named(&other, &[b"alice"]));
    assert_eq!(format!("{one:?}"), r#"Naming { prefix: "sluicegate:", is_secret: true }"#);
}

#[test]
fn a_digest_is_the_published_one() {
    // HMAC-SHA-256 under the secret `secret`, of the lengths 5 below a leading bit in 16 bytes, then of
    // `alice` in a word of 8.
    let row = named(&naming().secret(b"secret"), &[b"alice"]);
    assert!(row.starts_with("sluicegate:{$8712469beb2cb060443f58b5c8ae0ff8}"), "{row}");
}

#[test]
fn a_prefix_that_would_break_names_is_an_error() {
    assert_eq!(
        Naming::new("a{b").unwrap_err().to_string(),
        "the prefix contains a `{`, which begins a hash tag"
    );
    assert_eq!(
        Naming::new("a\r\nb").unwrap_err().to_string(),
        "the prefix contains a character that is not printable ASCII"
    );
}
