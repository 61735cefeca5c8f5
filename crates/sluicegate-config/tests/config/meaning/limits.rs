//! Limits, rules and their names.

use super::*;

#[test]
fn a_limit_that_is_none() {
    for (limits, problem) in [
        (
            "[\"5/fortnight\"]",
            "4:11: rules[0].limits[0]: in `5/fortnight`: the unit of time is not known: use us, ms, s, min, \
             h, d, w, month or year, or their names",
        ),
        (
            "[\"1/second\", { rate = \"0/minute\" }]",
            "4:32: rules[0].limits[1].rate: in `0/minute`: the count is 0: nothing would ever be admitted",
        ),
        (
            "[{ rate = \"leaky 5/minute\", burst = 7 }]",
            "4:46: rules[0].limits[0].burst: a burst belongs to a token bucket",
        ),
        (
            "[{ rate = \"5/minute\", soft = 7 }]",
            "4:39: rules[0].limits[0].soft: the soft limit is not below the most that the limit admits at once",
        ),
        (
            "[{ rate = \"5/minute\", soft = \"120%\" }]",
            "4:39: rules[0].limits[0].soft: `120%` is not a percentage, expected 1% to 100%, such as `80%`",
        ),
        (
            "[{ rate = \"5/minute\", over = \"ten\" }]",
            "4:39: rules[0].limits[0].over: `ten` is not a percentage, expected 1% to 100%, such as `80%`",
        ),
        (
            "[{ rate = \"5/minute\", ban = \"5 fortnights\" }]",
            "4:38: rules[0].limits[0].ban: `5 fortnights` is not a duration, expected a number and a unit, such as \
             `90 seconds` or `5 minutes`",
        ),
        (
            "[{ rate = \"5/minute\", ban = { for = \"1 hour soft 3\" } }]",
            "4:46: rules[0].limits[0].ban.for: `1 hour soft 3` is not a duration, expected a number and a unit, such \
             as `90 seconds` or `5 minutes`",
        ),
        (
            "[{ rate = \"5/minute\", ban = { for = \"1 hour\", after = 3 } }]",
            "4:38: rules[0].limits[0].ban: `after` needs a time: expected `within` as well",
        ),
        (
            "[{ rate = \"5/minute\", ban = { for = \"1 hour\", within = \"1 hour\" } }]",
            "4:38: rules[0].limits[0].ban: `within` needs a number: expected `after` as well",
        ),
        (
            "[{ rate = \"5/minute\", name = \"\" }]",
            "4:39: rules[0].limits[0].name: the name is empty",
        ),
        (
            "[{ rate = \"10/s burst 5\", burst = 7 }]",
            "4:44: rules[0].limits[0].burst: `rate` says this too, by `burst`: expected it in one of the two places",
        ),
        (
            "[{ rate = \"10/s over 10%\", burst = 70 }]",
            "4:45: rules[0].limits[0].burst: `rate` says this too, by `over`: expected it in one of the two places",
        ),
        (
            "[{ rate = \"10/s over 10%\", soft = 7 }]",
            "4:44: rules[0].limits[0].soft: `rate` says this too, by `over`: expected it in one of the two places",
        ),
        (
            "[{ rate = \"10/s named a\", name = \"b\" }]",
            "4:43: rules[0].limits[0].name: `rate` says this too, by `named`: expected it in one of the two places",
        ),
        (
            "[{ rate = \"10/s shadow\", shadow = false }]",
            "4:44: rules[0].limits[0].shadow: `rate` says this too, by `shadow`: expected it in one of the two places",
        ),
        ("[]", "4:10: rules[0].limits: the list has no limits, expected at least one"),
    ] {
        assert_eq!(rule(&format!("limits = {limits}")), problem, "{limits}");
    }
}

#[test]
fn a_rule_without_limits() {
    assert_eq!(rule(""), "1:1: rules[0].limits: the list has no limits, expected at least one");
}

#[test]
fn two_limits_of_one_name() {
    assert_eq!(
        rule("limits = [\"5/day\", \"5/second\", \"9 per second burst 20\"]"),
        "4:32: rules[0].limits[2]: two limits of the list are called `a/second`, expected a `name` for one of \
         them"
    );
    assert_eq!(
        rule("limits = [\"5/second named x\", { rate = \"9/day\", name = \"x\" }]"),
        "4:31: rules[0].limits[1]: two limits of the list are called `x`, expected a `name` for one of them"
    );
    assert_eq!(
        problems(
            "[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"1/second named b\"]\n\
             [[rules]]\nname = \"b\"\nkey = \"ip\"\nlimits = [\"1/second\"]"
        ),
        "6:8: rules[1].name: a limit of another rule is also called `b`, expected a unique name"
    );
}

#[test]
fn limits_of_one_name_and_two_algorithms() {
    assert_eq!(
        rule(
            "limits = [\"5/second\"]\ncases = [{ while = { cpu = \"80%\" }, limits = [\"fixed 9/second\"] }]"
        ),
        "2:8: rules[0].name: the limits called `a` are of two algorithms and cannot share a budget: expected one algorithm, or a `name` for each"
    );
}

#[test]
fn a_rule_that_serves_less_beside_others() {
    let other = "[[rules]]\nname = \"b\"\nkey = \"ip\"\nlimits = [\"1/second\"]";
    assert_eq!(
        problems(&format!(
            "[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"1/second\"]\nreject = \"degrade\"\n{other}"
        )),
        "5:10: rules[0].reject: a degraded request is charged by no rule, so it would bypass the others: expected this to be the only rule of the file"
    );
}

#[test]
fn a_name_that_limits_cannot_have() {
    assert_eq!(
        problems("[[rules]]\nname = \"\"\nkey = \"ip\"\nlimits = [\"1/second\"]"),
        "2:8: rules[0].name: the name is empty"
    );
    assert_eq!(
        problems(
            "[[rules]]\nname = \"a name that nobody could remember\"\nkey = \"ip\"\nlimits = [\"1/second\"]"
        ),
        "2:8: rules[0].name: the name is longer than 31 bytes"
    );
    assert_eq!(
        problems(
            "[[rules]]\nname = \"a name that is not too long\"\nkey = \"ip\"\n\
             limits = [\"1 per day\", \"1/second\"]"
        ),
        "4:24: rules[0].limits[1]: a limit cannot be called `a name that is not too long/second`: the name is \
         longer than 31 bytes"
    );
}

#[test]
fn two_rules_of_one_name() {
    let twice = "[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"1/second\"]\n".repeat(2);
    assert_eq!(
        problems(&twice),
        "6:8: rules[1].name: another rule is also called `a`, expected a unique name"
    );
}

#[test]
fn rules_that_are_too_many_for_every_request() {
    let rule =
        |at: u32| format!("[[rules]]\nname = \"r{at}\"\nkey = \"ip\"\nlimits = [\"5/hour\"]\n");
    let sixteen: String = (0..16).map(rule).collect();
    let document = read_toml(&sixteen).expect("it can be read");
    Policies::new(&document, &Environment::new()).expect("as many limits as a charge holds");
    let some = format!("{sixteen}{}when = {{ path = \"/x\" }}", rule(16));
    let document = read_toml(&some).expect("it can be read");
    Policies::new(&document, &Environment::new()).expect("no more for every request");
    let problem =
        problems(&format!("version = 1\n{sixteen}{}", rule(16)).replace("version = 1", ""));
    assert!(problem.contains("rules: every request is charged by at least 17 limits"), "{problem}");
}

/// A limit without a name is stored by rule and period, and another one may have just that name.
#[test]
fn two_limits_that_would_be_stored_as_one() {
    for limits in [
        r#"["fixed 5/second", "fixed 50/second named a/second"]"#,
        r#"["fixed 50/minute named a/second", "fixed 5/second"]"#,
        r#"["9/second", { rate = "7/hour", name = "a/second" }]"#,
    ] {
        let told = rule(&format!("limits = {limits}"));
        assert!(
            told.contains("is stored under the name of another limit of the list"),
            "{limits}: {told}"
        );
    }
}
