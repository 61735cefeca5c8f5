//! A file for `sluicegate proxy` says nothing that a proxy can never see.

use sluicegate_config::{Environment, Policies, read_toml};

const PROXY: &str =
    "[listen]\naddress = \"127.0.0.1:0\"\n[upstream]\nurl = \"http://127.0.0.1:1\"\n";

fn problem(text: &str) -> Option<String> {
    let document = read_toml(text).expect("a document");
    Policies::new(&document, &Environment::new()).err().map(|problem| problem.to_string())
}

#[test]
fn rules_that_a_proxy_cannot_see_are_errors_with_line_and_column() {
    for (rule, at) in [
        ("key = { claim = \"customer\" }", "key"),
        ("key = [\"ip\", { claim = \"customer\" }]", "key[1]"),
        ("key = { optional = { claim = \"customer\" } }", "key.optional"),
        ("key = { first = [{ claim = \"customer\" }, \"ip\"] }", "key.first[0]"),
        ("key = \"route\"", "key"),
        ("key = \"ip\"\nwhen = { claim = { plan = \"free\" } }", "when.claim"),
        ("key = \"ip\"\nwhen = { not = { route = \"/a\" } }", "when.not.route"),
        (
            "key = \"ip\"\nwhen = { any = [{ path = \"/a\" }, { route = \"/a\" }] }",
            "when.any[1].route",
        ),
        ("key = \"ip\"\nsettle = \"response\"", "settle"),
    ] {
        let text = format!("[[rules]]\nname = \"a\"\nlimits = [\"9/minute\"]\n{rule}\n");
        assert_eq!(problem(&text), None, "{rule}");
        let problem = problem(&format!("{PROXY}{text}")).expect("a problem");
        assert!(problem.contains(&format!("rules[0].{at}: ")), "{rule}: {problem}");
        let line = problem.split(':').next().and_then(|line| line.parse::<usize>().ok());
        assert!(line.is_some_and(|line| line > 4), "{rule}: {problem}");
    }
}

#[test]
fn a_throttle_that_asks_what_a_proxy_cannot_see_is_an_error() {
    for (setting, at) in [
        ("predict_by = ['method', 'route']", "predict_by[1]"),
        ("fair_by = { claim = 'customer' }", "fair_by"),
        ("fair_by = { header = 'x_api_key' }", "fair_by.header"),
        ("class = [{ name = 'SHEDDABLE', when = { route = '/a' } }]", "class[0].when.route"),
        ("exempt = { any = [{ path = '/a' }, { claim = { a = '1' } }] }", "exempt.any[1].claim"),
        (
            "partitions = [{ name = 'a', share = '10%', when = { not = { route = '/a' } } }]",
            "partitions[0].when.not.route",
        ),
        ("class_header = { header = 'x_class', trusted = ['10.0.0.0/8'] }", "class_header.header"),
        ("deadline = { header = 'x-forwarded-deadline' }", "deadline.header"),
        ("reported_cost = 'on-top'", "reported_cost"),
        ("capacity = { cost_per_second = 50 }\nqueue = { cost = 50 }", "capacity.cost_per_second"),
    ] {
        let begin = match setting.contains("capacity") {
            true => "[throttle]\n",
            false => "[throttle]\ncapacity = { in_flight = 9 }\nqueue = '1 s'\n",
        };
        let text = format!("{begin}{setting}\n");
        assert_eq!(problem(&text), None, "{setting}");
        let problem = problem(&format!("{PROXY}{text}")).expect("a problem");
        assert!(problem.contains(&format!("throttle.{at}: ")), "{setting}: {problem}");
    }
}

/// What is removed before the limits read a request.
#[test]
fn headers_that_the_proxy_removes_are_errors_wherever_they_are_read() {
    const ODD: &str = "a proxy removes headers whose names have other characters";
    const STRANGERS: &str = "only a proxy may write this header";
    const MISTAKEN: &str = "applications may take it for one that the proxy reads or writes";
    let proxy = |listen: &str, more: &str, rule: &str| {
        let begin = PROXY.replace("[upstream]", &format!("{listen}\n[upstream]"));
        let rule =
            if rule.contains("key =") { rule.to_owned() } else { format!("key = 'ip'\n{rule}") };
        problem(&format!("{more}\n[[rules]]\nname = 'a'\nlimits = ['9/minute']\n{rule}\n{begin}"))
    };
    let trusted = "proxies = { trusted = ['10.0.0.0/8'] }";
    for (listen, more, rule, expected) in [
        ("", "", "key = { header = 'x_api_key' }", Some(("rules[0].key.header", ODD))),
        (
            "",
            "",
            "key = { optional = { header = 'api_key' } }",
            Some(("rules[0].key.optional.header", ODD)),
        ),
        ("", "", "key = { header = 'X.Api.Key' }", Some(("rules[0].key.header", ODD))),
        (
            "",
            trusted,
            "when = { header = { x_internal = true } }",
            Some(("rules[0].when.header.x_internal", ODD)),
        ),
        ("", "", "cost = { header = 'x_cost', default = 1 }", Some(("rules[0].cost.header", ODD))),
        (
            "",
            "",
            "cases = [{ when = { not = { header = { x_a = true } } }, limits = ['1/minute'] }]",
            Some(("rules[0].cases[0].when.not.header.x_a", ODD)),
        ),
        ("underscores = true", "", "key = { header = 'x_api_key' }", None),
        (
            "underscores = true",
            trusted,
            "key = { header = 'x_real_ip' }",
            Some(("rules[0].key.header", MISTAKEN)),
        ),
        ("", "", "key = { header = 'CF-Connecting-IP' }", Some(("rules[0].key.header", STRANGERS))),
        (
            "",
            "",
            "when = { header = { x-http-method-override = true } }",
            Some(("rules[0].when.header", STRANGERS)),
        ),
        (
            "",
            "",
            "when = { header = { x-forwarded-proto = 'http' } }",
            Some(("rules[0].when.header", STRANGERS)),
        ),
        ("", trusted, "key = { header = 'cf-connecting-ip' }", None),
        ("", "", "key = { header = 'x-api-key' }", None),
        // What is written into responses is not removed.
        ("", "", "settle = { header = 'x_cost' }", None),
        ("", &trusted.replace(" }", ", header = 'x_client' }"), "", Some(("proxies.header", ODD))),
        ("underscores = true", &trusted.replace(" }", ", header = 'x_client' }"), "", None),
        (
            "underscores = true",
            &trusted.replace(" }", ", header = 'x_client' }"),
            "key = { header = 'x-client' }",
            Some(("rules[0].key.header", MISTAKEN)),
        ),
    ] {
        let problem = proxy(listen, more, rule);
        match expected {
            None => assert_eq!(problem, None, "{rule} {more}"),
            Some((at, why)) => {
                let problem = problem.unwrap_or_else(|| panic!("{rule} {more}"));
                assert!(problem.contains(at) && problem.contains(why), "{rule}: {problem}");
            }
        }
    }
    // Other programs remove nothing.
    assert_eq!(
        problem("[[rules]]\nname = 'a'\nlimits = ['9/minute']\nkey = { header = 'x_a' }"),
        None
    );
}

#[test]
fn tokens_are_not_settled_with_the_head() {
    let rule = "[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"9/minute\"]\nsettle = { tokens = \"all\" }\n";
    assert_eq!(problem(rule), None);
    let problem = problem(&format!("hold_until = \"head\"\n{rule}")).expect("a problem");
    assert!(
        problem.contains("rules[0].settle: the tokens of an answer are known at the end"),
        "{problem}"
    );
}
