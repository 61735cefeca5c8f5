//! Files that say nothing, or end too soon: the policies in force stay.

use super::{Place, admits, everybody, in_force};
use crate::Environment;
use crate::live::Live;
use crate::policy_file::Format;

const TOML: &str = include_str!("../../../tests/documents/sample.toml");
const JSON: &str = include_str!("../../../tests/documents/everything.json");

#[test]
fn a_file_that_only_mentions_rules_is_empty() {
    let place = Place::with(&everybody(10));
    let live = place.open();
    for text in [
        "",
        " \n\t\n",
        "\u{feff}",
        "\u{feff}\n# rules\n",
        "# The rules of the shop follow.\n",
        "# rules = []\n",
        "#[[rules]]\n#name = \"all\"\n",
        "time_zone = \"UTC\" # rules\n",
        "[customers]\nrules = \"free\"\n[tiers.free]\nunlimited = true\n",
        "[tiers.rules]\nlimits = [\"1/day\"]\n",
        "\"$schema\" = \"rules\"\n",
        "\"$schema\" = \"\"\"\n[[rules]]\n\"\"\"\n",
    ] {
        place.write(text);
        let problems = live.reload().expect_err("nothing is said").to_string();
        assert!(problems.contains("there are no rules"), "{text:?}: {problems}");
        assert!(admits(&live, 10), "{text:?}");
    }
    for text in
        ["[rules_old]\n", "rules_old = []\n", "rules = {}\n", "rules = \"[]\"\n", "Rules = []"]
    {
        place.write(text);
        live.reload().expect_err("something else is said");
        assert!(admits(&live, 10), "{text:?}");
    }
    for text in ["rules = []", "\"rules\" = []", "\u{feff}rules = [ ]\r\n"] {
        place.write(text);
        live.reload().expect("it is said that there are none");
        assert!(in_force(&live).is_empty());
        place.write(&everybody(10));
        live.reload().expect("valid policies");
    }
}

fn open(name: &str, text: &str) -> Result<Live, crate::PolicyError> {
    let place = Place::empty();
    std::fs::write(place.at(name), text).expect("a file");
    Live::open(place.at(name), Environment::new())
}

#[test]
fn an_empty_file_of_another_format_is_empty_too() {
    for (name, text) in [
        ("a.json", ""),
        ("a.json", "{}"),
        ("a.json", "null"),
        ("a.json", "{\"rules\": null}"),
        ("a.json", "{\"$schema\": \"rules\"}"),
        (
            "a.json",
            "{\"customers\": {\"rules\": \"free\"}, \"tiers\": {\"free\": {\"unlimited\": true}}}",
        ),
    ] {
        let problems = open(name, text).expect_err("nothing is said");
        assert!(!problems.to_string().is_empty(), "{text}");
    }
    for (name, text) in [("a.json", "{\"rules\": []}"), ("a.json", "\u{feff}{\"rules\": []}")] {
        assert!(in_force(&open(name, text).expect(text)).is_empty(), "{text}");
    }
}

/// How many rules each prefix of a file seems to say, and says.
fn prefixes(format: &Format, text: &str, begins: &str) {
    let mut accepted = 0;
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        let prefix = &text[..end];
        let Ok((document, _)) = format.read(prefix) else { continue };
        let seem = prefix.lines().filter(|line| line.trim_start().starts_with(begins)).count();
        assert!(seem > 0, "{prefix}");
        assert!(document.rules.len() >= seem, "{prefix}");
        accepted += 1;
    }
    assert!(accepted > 0);
}

#[test]
fn every_beginning_of_a_file_is_refused_or_says_all_rules_that_it_seems_to_say() {
    prefixes(&Format::toml(), TOML, "[[rules]]");
    for end in (0..JSON.trim_end().len()).filter(|end| JSON.is_char_boundary(*end)) {
        assert!(Format::json().read(&JSON[..end]).is_err(), "{end}");
    }
}
