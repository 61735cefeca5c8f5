use proptest::prelude::*;

use super::*;

/// Everything that was shown, as text.
#[derive(Debug, Default, PartialEq, Eq)]
struct All(Vec<String>);

impl Visit for All {
    fn number(&mut self, path: &Path, number: Option<u64>) {
        self.0.push(format!("{:?} = {number:?}", path.names()));
    }

    fn string(&mut self, path: &Path, JsonString { beginning, length, .. }: JsonString<'_>) {
        let beginning = String::from_utf8_lossy(beginning);
        self.0.push(format!("{:?} = {beginning:?} of {length}", path.names()));
    }
}

fn read(pieces: &[&[u8]]) -> (All, bool) {
    let (mut json, mut seen) = (Json::new(), All::default());
    for piece in pieces {
        json.read(piece, &mut seen);
    }
    (seen, json.is_complete())
}

fn numbers(text: &str) -> Vec<String> {
    read(&[text.as_bytes()]).0.0
}

#[test]
fn values_are_shown_with_the_names_that_lead_to_them() {
    let text = r#" {"usage": {"total_tokens": 12, "x": [1, {"input": "a\n\u00e9"}]}, "n": null} "#;
    let (seen, is_complete) = read(&[text.as_bytes()]);
    assert!(is_complete);
    assert_eq!(
        seen.0,
        [
            "[Usage, TotalTokens] = Some(12)",
            "[Usage, Other, Item] = Some(1)",
            "[Usage, Other, Item, Input] = \"a\\n\u{fffd}\u{fffd}\u{fffd}\" of 5",
            "[N] = None",
        ]
    );
}

#[test]
fn a_string_that_looks_like_structure_is_a_string() {
    let text = r#"{"content": "\"}, \"usage\": {\"total_tokens\": 0}"}"#;
    assert_eq!(numbers(text).len(), 1);
    assert!(numbers(text)[0].starts_with("[Text] = "));
}

#[test]
fn a_key_that_is_written_by_escapes_is_the_same_key() {
    let text = r#"{"max\u005f\u0074okens": 7, "max_tokens\u00e9": 8}"#;
    assert_eq!(numbers(text), ["[MaxTokens] = Some(7)", "[Other] = Some(8)"]);
}

#[test]
fn numbers_are_whole_bounded_and_not_negative() {
    for (text, number) in [
        ("0", Some(0)),
        ("1000", Some(1000)),
        ("1e3", Some(1000)),
        ("1000.0", Some(1000)),
        ("0.5", Some(1)),
        ("-1", None),
        ("1e999", Some(u64::MAX)),
        ("99999999999999999999", Some(u64::MAX)),
        ("1-1", Some(1)),
        ("9999999999999999999999999999999999999999999999", Some(u64::MAX)),
    ] {
        assert_eq!(numbers(&format!("[{text}]")), [format!("[Item] = {number:?}")], "{text}");
    }
}

#[test]
fn what_is_not_json_is_not_complete() {
    for text in [
        "",
        "{",
        "{]",
        "[}",
        "{\"a\"}",
        "{\"a\":1,}",
        "[1,]",
        "[1 2]",
        "nul",
        "nulL",
        "\"a",
        "{a:1}",
        "[1]]",
        "[1] x",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"a\nb\"",
        "[DONE]",
        "{'a':1}",
        "[,1]",
    ] {
        assert!(!read(&[text.as_bytes()]).1, "{text}");
    }
    for text in ["{}", "[]", "null", "true", " [ ] ", "{\"a\":{}}", "\"a\"", "[false,null]"] {
        assert!(read(&[text.as_bytes()]).1, "{text}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(read(&[nested(128).as_bytes()]).1);
    // Deeper than that, there are no names.
    assert!(read(&[nested(129).as_bytes()]).1);
    assert!(read(&[nested(1_000_000).as_bytes()]).1);
    assert!(!read(&["[".repeat(1_000_000).as_bytes()]).1);
}

/// Any document.
fn documents() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,60}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let key = prop_oneof![Just("usage".to_owned()), Just("total_tokens".to_owned()), ".{0,5}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_document_reads_alike_however_it_is_cut(
        document in documents(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let text = document.to_string().into_bytes();
        let whole = read(&[&text]);
        prop_assert!(whole.1 || document.is_number());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            pieces.push(&text[from..cut]);
            from = cut;
        }
        prop_assert_eq!(read(&pieces), whole);
    }

    #[test]
    fn no_bytes_make_the_reader_fail(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read(&[&bytes]);
    }
}
