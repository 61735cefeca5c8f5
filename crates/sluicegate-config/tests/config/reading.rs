//! What is read from a document, and the errors of one that cannot be read.

use sluicegate_config::{Document, PolicyError, read_json, read_toml};

const TOML: &str = include_str!("../documents/everything.toml");
const JSON: &str = include_str!("../documents/everything.json");

#[test]
fn toml_and_json_say_the_same() {
    let document = read_toml(TOML).expect("a document");
    assert_eq!(read_json(JSON).expect("a document"), document);
}

#[test]
fn an_empty_document_says_nothing() {
    assert_eq!(read_toml("").expect("a document"), Document::default());
    assert_eq!(read_json("{}").expect("a document"), Document::default());
    assert!(read_json("{\"$schema\": \"schema.json\"}").expect("a document").rules.is_empty());
}

fn told(read: Result<Document, PolicyError>) -> String {
    read.expect_err("something is wrong").to_string()
}

/// A rule that lacks nothing, and has this besides; the text begins in the fourth line.
fn toml(rest: &str) -> String {
    let limits = if rest.contains("limits") || rest.contains("tiers") { "" } else { LIMITS };
    told(read_toml(&format!("[[rules]]\nname = \"a\"\nkey = \"ip\"\n{rest}\n{limits}")))
}

const LIMITS: &str = "limits = [\"5/second\"]\n";

#[test]
fn what_newcomers_write_is_answered_with_what_to_write() {
    let limits = "limits = [\"5/second\"]";
    assert_eq!(
        told(read_toml(&format!("[rules]\nname = \"a\"\nkey = \"ip\"\n{limits}"))),
        "1:1: rules: found a table, expected a list: in TOML, each rule begins with `[[rules]]`"
    );
    assert_eq!(
        told(read_toml(&format!("[[rules]]\nname = \"a\"\nkey = \"api-key\"\n{limits}"))),
        "3:7: rules[0].key: `api-key` is not known here, expected `ip`, `route`, `method`, `path`, `host`, \
         `global`, `country`, `region`, `{ header = \"..\" }`, `{ cookie = \"..\" }`, `{ query = \"..\" }` or \
         `{ claim = \"..\" }`"
    );
}

#[test]
fn problems_in_toml_are_told_with_their_place() {
    for (rest, problem) in [
        (
            "limits = [{ rate = \"5/second\", brust = 5 }]",
            "4:32: rules[0].limits[0].brust: `brust` is not known here; did you mean `burst`? expected \
             `rate`, `name`, `burst`, `soft`, `over`, `ban`, `shadow` or `when_full`",
        ),
        (
            "reject = \"blok\"",
            "4:10: rules[0].reject: `blok` is not known here; did you mean `block`? expected `block`, \
             `shadow` or `degrade`",
        ),
        (
            "when = { hours = { on = [\"sat\", \"monday\"] } }",
            "4:33: rules[0].when.hours.on[1]: `monday` is not known here; did you mean `mon`? expected \
             `mon`, `tue`, `wed`, `thu`, `fri`, `sat` or `sun`",
        ),
        (
            "limits = \"5/second\"",
            "4:10: rules[0].limits: found the text \"5/second\", expected a list",
        ),
        (
            "limits = [5]",
            "4:11: rules[0].limits[0]: found the integer `5`, expected a limit such as \
             \"100/minute burst 20\" or { rate = \"100/minute\", burst = 20 }",
        ),
        (
            "limits = [{ rate = \"5/second\", burst = -5 }]",
            "4:40: rules[0].limits[0].burst: found the integer `-5`, expected a whole number, not negative",
        ),
        (
            "cost = { header = \"x\", most = \"5\" }",
            "4:31: rules[0].cost.most: found the text \"5\", expected a whole number, not negative",
        ),
        (
            "count_if = [401, 70000]",
            "4:18: rules[0].count_if[1]: found the integer `70000`, expected a whole number from 0 to 65535",
        ),
        (
            "when = { header = { x = 5 } }",
            "4:25: rules[0].when.header.x: found the integer `5`, expected a text, a list of texts, or `true` if it must be present",
        ),
        (
            "when = [\"POST\"]",
            "4:8: rules[0].when: found a list, expected a condition, a table such as { method = [\"POST\"] }",
        ),
        ("tiers = { by = { claim = \"plan\" } }", { "4:9: rules[0].tiers: `default` is missing" }),
        ("name = \"b\"", "4:1: `name` occurs twice, expected once"),
    ] {
        assert_eq!(toml(rest), problem, "{rest}");
    }
}

#[test]
fn a_key_is_one_source_or_a_list() {
    let key =
        |key: &str| told(read_toml(&format!("[[rules]]\nname = \"a\"\nkey = {key}\n{LIMITS}")));
    assert_eq!(
        key("{ header = \"x\", cookie = \"y\" }"),
        "3:7: rules[0].key: a key has one source: put several keys that form one key in a list `[..]`"
    );
    assert_eq!(
        key("{ first = [\"ip\", { heder = \"x\" }] }"),
        "3:26: rules[0].key.first[1].heder: `heder` is not known here; did you mean `header`? expected \
         `header`, `cookie`, `query`, `claim`, `const`, `first` or `optional`"
    );
    assert_eq!(
        key("{}"),
        "3:7: rules[0].key: there is no key, expected a key such as \"ip\", { header = \"x-api-key\" } \
         or [\"ip\", \"route\"]"
    );
}

#[test]
fn all_errors_of_syntax_are_told_at_once() {
    assert_eq!(
        told(read_toml("a = = 1\n[b\nc = 3 4")),
        "1:5: this is not TOML: extra `=`, expected nothing\n\
         1:7: this is not TOML: unexpected key or value, expected newline, `#`\n\
         2:3: this is not TOML: unclosed table, expected `]`"
    );
}

#[test]
fn problems_in_json_are_told_with_their_place() {
    for (text, problem) in [
        ("", "1:1: this is not JSON: EOF while parsing a value"),
        ("{\n  \"rules\": [}", "2:13: this is not JSON: expected value"),
        ("{} x", "1:4: this is not JSON: trailing characters"),
        ("[]", "1:1: found a list, expected a table of policies"),
        (
            "{\"rulles\": []}",
            "1:2: rulles: `rulles` is not known here; did you mean `rules`? expected `$schema`, \
             `time_zone`, `proxies`, `nat64`, `geoip`, `hold_until`, `dialect`, `throttle`, `listen`, \
             `upstream`, `tiers`, `customers` or `rules`",
        ),
        (
            "{\n\t\"customers\": {\n\t\t\"a\": \"b\", \"ü\": \"c\", \"a\": \"d\" },\n\"tiers\": {\"b\": {\"unlimited\": true}, \"c\": {\"unlimited\": true}} }",
            "3:23: customers.a: `a` occurs twice, expected once",
        ),
        (
            "{\"$schema\": \"\\ud83d\\ude00\", \"rules\": [{\"name\": \"a\", \"limits\": [\"5/s\"],\n \"key\": {\"header\": 5}}]}",
            "2:20: rules[0].key.header: found the integer `5`, expected a text",
        ),
        (
            "{\"rules\": [{\"name\": \"a\",\n \"key\": \"ipp\", \"limits\": [\"5/s\"]}]}",
            "2:9: rules[0].key: `ipp` is not known here; did you mean `ip`? expected `ip`, `route`, \
             `method`, `path`, `host`, `global`, `country`, `region`, `{ header = \"..\" }`, \
             `{ cookie = \"..\" }`, `{ query = \"..\" }` or `{ claim = \"..\" }`",
        ),
        (
            "{\"rules\": [\n {\"name\": \"a\", \"limits\": [\"5/s\"]}]}",
            "2:2: rules[0]: `key` is missing",
        ),
        (
            "{\"rules\": [{\"name\": \"a\", \"key\": \"ip\",\n \"limits\": [{\"rate\": \"5/s\", \"soft\": 1.5}]}]}",
            "2:37: rules[0].limits[0].soft: found the floating point `1.5`, expected a number, or a \
             percentage such as \"80%\"",
        ),
        (
            "{\"rules\": [{\"name\": \"a\", \"key\": \"ip\",\n \"limits\": [{\"rate\": 1e-320}]}]}",
            "2:22: rules[0].limits[0].rate: found the floating point `1e-320`, expected a text",
        ),
        (
            "{\"rules\": [{\"name\": \"a\", \"key\": \"ip\",\n \"when\": {\"not\": []}, \"limits\": [\"5/s\"]}]}",
            "2:18: rules[0].when.not: found a list, expected a condition, a table such as \
             { method = [\"POST\"] }",
        ),
        ("{\"rules\": null}", "1:11: rules: found nothing (`null`), expected a list"),
    ] {
        assert_eq!(told(read_json(text)), problem, "{text}");
    }
}

#[test]
fn a_text_that_is_deep_is_no_document() {
    let deep = |open: &str| told(read_json(&open.repeat(20_000)));
    assert!(deep("[").contains("this is not JSON"));
    assert!(deep("{\"rules\": [").contains("this is not JSON"));
    assert!(
        told(read_toml(&format!("rules = {}", "[".repeat(20_000)))).contains("this is not TOML")
    );
    let closed = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(told(read_json(&closed)).contains("expected a table"));
    let rules = format!("{{\"rules\": [{{\"name\": \"a\", \"key\": {closed}}}]}}");
    assert!(told(read_json(&rules)).contains("recursion limit"));
}
