//! The settings around the rules, and the order of errors.

use super::*;

#[test]
fn what_stands_around_the_rules() {
    for (text, problem) in [
        (
            "time_zone = \"Europe/Berlinn\"",
            "1:13: time_zone: `Europe/Berlinn` is no time zone: IANA names are such as `Europe/Berlin`",
        ),
        (
            "proxies = { trusted = [\"10.0.0.0/8\", \"nginx\"], header = \"x y\" }",
            "1:38: proxies.trusted[1]: the trusted proxy `nginx` is neither an address nor a network such as `10.0.0.0/8`\n\
             1:57: proxies.header: `x y` is not the name of a header, expected a name such as `x-api-key`",
        ),
    ] {
        assert_eq!(problems(text), problem, "{text}");
    }
    let missing = problems("geoip = { database = \"nowhere/countries.mmdb\" }");
    let start =
        "1:22: geoip.database: the GeoIP database `nowhere/countries.mmdb` cannot be read: ";
    assert!(missing.starts_with(start), "{missing}");
}

#[test]
fn tiers_that_do_not_fit_together() {
    const TIERS: &str =
        "tiers = { free = { limits = [\"1/second\"] }, paid = { limits = [\"9/second\"] } }\n";
    let rule =
        |rest: &str| problems(&format!("{TIERS}[[rules]]\nname = \"a\"\nkey = \"ip\"\n{rest}\n"));
    for (rest, problem) in [
        (
            "tiers = { by = { claim = \"plan\" }, default = \"fre\" }",
            "5:46: rules[0].tiers.default: there is no tier `fre`, expected `free` or `paid`",
        ),
        (
            "tiers = { by = { header = \"x-plan\" }, default = \"free\" }",
            "5:16: rules[0].tiers.by: a tier must come from a value that the service has verified, because a client can choose all others: expected { claim = \"..\" } or { const = \"..\" }",
        ),
        (
            "tiers = { by = { const = \"pad\" }, default = \"free\" }",
            "5:16: rules[0].tiers.by: there is no tier `pad`, expected `free` or `paid`",
        ),
        (
            "tiers = { default = \"free\" }",
            "5:9: rules[0].tiers: the source of the tier is missing: expected one of `by` and `customer`",
        ),
        (
            "tiers = { by = { claim = \"plan\" }, default = \"free\" }\nlimits = [\"1/second\"]",
            "6:10: rules[0].limits: `tiers` sets the limits of every request, with `default` for unknown ones: expected no `limits` beside it",
        ),
    ] {
        assert_eq!(rule(rest), problem, "{rest}");
    }
    for (text, problem) in [
        (
            "tiers = { a = {} }",
            "1:15: tiers.a: the tier has no limits, expected `limits`, or `unlimited = true`",
        ),
        (
            "tiers = { a = { limits = [\"1/second\"], unlimited = true } }",
            "1:15: tiers.a: the tier has limits and is unlimited: expected one of the two",
        ),
        (
            "tiers = { a = { limits = [\"1/aeon\"] } }",
            "1:27: tiers.a.limits[0]: in `1/aeon`: the unit of time is not known: use us, ms, s, min, h, d, w, \
             month or year, or their names",
        ),
        (
            "customers = { acme = \"gold\" }\ntiers = { a = { unlimited = true } }",
            "1:22: customers.acme: there is no tier `gold`, expected `a`",
        ),
    ] {
        assert_eq!(problems(text), problem, "{text}");
    }
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_the_text() {
    let told = problems(
        "time_zone = \"Nowhere\"\n\
         [[rules]]\nname = \"a\"\nkey = { header = \"x y\" }\nlimits = [\"1/aeon\", \"2/second brust 5\"]\n\
         when = { method = \"get\" }\ncost = 0\n",
    );
    let places: Vec<_> =
        told.lines().map(|line| line.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(places, ["1:13", "4:18", "5:11", "5:21", "6:19", "7:8"]);
}

#[test]
fn in_json_a_problem_has_its_own_place() {
    let json = "{\n\t\"rules\": [{\n\t\t\"name\": \"a\", \"key\": \"ip\",\n\t\t\"limits\": [\"5/second\", {\"rate\": \"5/aeon\"}],\n\t\t\"when\": {\"not\": {\"hours\": {\"on\": []}}}\n\t}]\n}";
    assert_eq!(
        compile(read_json(json)).in_file("policies.json").to_string(),
        "policies.json:4:35: rules[0].limits[1].rate: in `5/aeon`: the unit of time is not known: use us, ms, \
         s, min, h, d, w, month or year, or their names\n\
         policies.json:5:29: rules[0].when.not.hours: the hours are empty: expected `between`, `on` or both"
    );
}
