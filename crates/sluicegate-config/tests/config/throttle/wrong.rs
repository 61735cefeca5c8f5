use sluicegate_config::{Environment, Policies, read_json};

use super::*;

/// What is told of a file: the lines count from the one below `[throttle]`, which is the third.
fn told(said: &str) -> String {
    policies(said, &ManualClock::new()).unwrap_err().to_string()
}

#[test]
fn everything_that_is_wrong_is_told_with_its_line_and_column() {
    let said = "name = ''
capacity = { in_flight = 0 }
queue = 'soon'
classes = ['a', 'b', 'A']
weights = [1]
class_header = { header = 'x y', trusted = ['10.0.0.0/8', 'nobody'] }
class = [{ name = 'c', when = { method = 'post' } }]
predict_by = { header = 'x y' }
codel = { target = 'x', interval = '100 ms' }
deadline = { header = 'x-deadline-ms', grpc = true }
partitions = [{ name = '', share = 30, when = {} }, { name = 'b', share = '130%', when = { path = '' } }]
when_shed = { redirect = 'a b', status = 200 }
freshest_when_late = '1 moment'
";
    let told = told(said);
    for line in [
        "3:8: throttle.name: the name is empty, expected one such as `api`",
        "5:9: throttle.queue: `soon` is not a duration",
        "6:11: throttle.classes: the class `A` is named twice",
        "8:27: throttle.class_header.header: `x y` is not the name of a header",
        "8:59: throttle.class_header.trusted[1]: ",
        "9:42: throttle.class[0].when.method: methods are case-sensitive",
        "10:25: throttle.predict_by.header: `x y` is not the name of a header",
        "11:20: throttle.codel.target: `x` is not a duration",
        "12:12: throttle.deadline: expected either `header` or `grpc = true`",
        "13:24: throttle.partitions[0].name: the name is empty",
        "13:36: throttle.partitions[0].share: `30` is not a percentage, expected one such as `80%`",
        "13:75: throttle.partitions[1].share: `130%` is not a percentage",
        "14:26: throttle.when_shed.redirect: \"a b\" is not a URI",
        "14:42: throttle.when_shed.status: 200 is not a redirection",
        "15:22: throttle.freshest_when_late: `1 moment` is not a duration",
    ] {
        assert!(told.lines().any(|found| found.starts_with(line)), "{line}\nis not in\n{told}");
    }
}

/// Only the last partition may be that of all other requests.
#[test]
fn a_condition_that_comes_too_late_is_told() {
    let file = |rest: &str| format!("capacity = {{ in_flight = 4 }}\nqueue = '1 s'\n{rest}");
    let login = "when = { path = '/login' }";
    let class = told(&file(&format!(
        "class = [{{ name = 'CRITICAL', {login} }}, {{ name = 'SHEDDABLE', {login} }}]"
    )));
    assert!(class.contains("throttle.class[1].when: this is never reached"), "{class}");
    let partitions = told(&file(&format!(
        "partitions = [{{ name = 'a', share = '5%', {login} }}, {{ name = 'b', share = '5%', {login} }}]"
    )));
    assert!(partitions.contains("throttle.partitions[1].when: this is never"), "{partitions}");
    let early = told(&file(&format!(
        "partitions = [{{ name = 'a', share = '5%', when = {{}} }}, {{ name = 'b', share = '5%', {login} }}]"
    )));
    assert!(early.contains("throttle.partitions[0].when: the condition is empty"), "{early}");
}

/// A condition that always holds would exempt every request, or give all of them one class.
#[test]
fn a_condition_that_is_empty_is_told_with_its_line_and_column() {
    let told = told(
        "capacity = { in_flight = 4 }\nqueue = '1 s'\nexempt = {}\nclass = [{ name = 'CRITICAL', when = {} }]",
    );
    assert_eq!(told.lines().count(), 2, "{told}");
    for start in [
        "5:10: throttle.exempt: the condition is empty",
        "6:38: throttle.class[0].when: the condition",
    ] {
        assert!(told.lines().any(|line| line.starts_with(start)), "{start}\nis not in\n{told}");
    }
}

#[test]
fn what_cannot_work_is_told_in_a_sentence_beside_the_setting() {
    let capacity = "capacity = { in_flight = 4 }\n";
    let none = told("capacity = {}\nqueue = '1 s'");
    assert!(
        none.starts_with(
            "3:12: throttle.capacity: a throttle has one capacity, expected exactly one of"
        ),
        "{none}"
    );
    let two = told("capacity = { in_flight = 4, cpu = '80%' }\nqueue = '1 s'");
    assert!(two.contains("throttle.capacity: a throttle has one capacity"), "{two}");
    let zero = told("capacity = { in_flight = 0 }\nqueue = '1 s'");
    assert_eq!(zero, "3:12: throttle.capacity: a throttle needs a capacity above zero");
    let small = told(&format!("{capacity}queue = {{ cost = 5 }}\ndearest = 6"));
    assert_eq!(
        small,
        "4:9: throttle.queue: the queue holds a cost of 5, but the dearest request costs 6 and would never fit"
    );
    let weights = told(&format!("{capacity}queue = '1 s'\nweights = [1, 1, 0, 1]"));
    assert!(
        weights.starts_with("5:11: throttle.weights: a class with a weight of zero"),
        "{weights}"
    );
    let few = told(&format!("{capacity}queue = '1 s'\nweights = [1]"));
    assert_eq!(few, "5:11: throttle.weights: 4 classes need 4 weights; 1 were given");
    let part = |name: &str, share: &str| {
        format!("{{ name = '{name}', share = '{share}', when = {{ path = '/{name}-{share}' }} }}")
    };
    let shares = format!("partitions = [{}, {}]", part("a", "60%"), part("b", "60%"));
    let sum = told(&format!("{capacity}queue = '1 s'\n{shares}"));
    assert_eq!(
        sum,
        "5:14: throttle.partitions: the shares of all partitions are at most 1 together, not 1.2"
    );
    let twice = format!("partitions = [{}, {}]", part("a", "6%"), part("a", "7%"));
    let twice = told(&format!("{capacity}queue = '1 s'\n{twice}"));
    assert_eq!(twice, "5:14: throttle.partitions: the partition `a` is named twice");
    let rate = told(&format!(
        "capacity = {{ cpu = '80%' }}\nqueue = '1 s'\npartitions = [{}]",
        part("a", "6%")
    ));
    assert!(
        rate.contains("throttle.partitions: partitions divide work in flight; a rate has none"),
        "{rate}"
    );
    let codel =
        told(&format!("{capacity}queue = '1 s'\ncodel = {{ target = '2 s', interval = '1 s' }}"));
    assert!(codel.contains("throttle.codel: the target of CoDel"), "{codel}");
    let class = told(&format!("{capacity}queue = '1 s'\ndefault_class = 'top'"));
    assert_eq!(
        class,
        "5:17: throttle.default_class: there is no class `top`, expected `CRITICAL_PLUS` or `CRITICAL` or \
         `SHEDDABLE_PLUS` or `SHEDDABLE`"
    );
    let bounds = "capacity = { adaptive = { start = 5, min = 9 } }\nqueue = '1 s'";
    assert!(
        told(bounds)
            .contains("throttle.capacity.adaptive: the limit starts at 5 and stays from 9 to 1000")
    );
}

#[test]
fn shapes_are_told_with_what_was_expected() {
    let misspelt = told("capacity = { in_flight = 4 }\nqueue = '1 s'\nexempts = {}");
    assert!(
        misspelt
            .contains("5:1: throttle.exempts: `exempts` is not known here; did you mean `exempt`?"),
        "{misspelt}"
    );
    let bound = told("capacity = { adaptive = { most = 9 } }\nqueue = '1 s'");
    assert!(
        bound.contains("`most` is not known here, expected `start`, `min` or `max`"),
        "{bound}"
    );
    let name = told("capacity = { adaptive = 'bandwidth' }\nqueue = '1 s'");
    assert!(name.contains("expected a table such as {} or { max = 500 }"), "{name}");
    let queue = told("capacity = { in_flight = 4 }\nqueue = 5");
    assert!(
        queue.contains(
            "4:9: throttle.queue: found the integer `5`, expected a time such as \"200 ms\""
        ),
        "{queue}"
    );
    let missing = told("capacity = { in_flight = 4 }");
    assert!(missing.contains("throttle: `queue` is missing"), "{missing}");
    let shed = told(
        "capacity = { in_flight = 4 }\nqueue = '1 s'\nwhen_shed = { redirect = 'a', degrade = 5 }",
    );
    assert!(shed.contains("expected \"block\", { redirect = "), "{shed}");
    let shed = told("capacity = { in_flight = 4 }\nqueue = '1 s'\nwhen_shed = { degrade = 0 }");
    assert!(
        shed.contains("throttle.when_shed.degrade: with 0 degraded requests all are refused"),
        "{shed}"
    );
    let json = read_json(
        "{ \"rules\": [],\n \"throttle\": { \"capacity\": { \"in_flight\": 4 },\n \"queue\": { \"cost\": 0 } } }",
    );
    let json = Policies::new(&json.unwrap(), &Environment::new()).unwrap_err().to_string();
    assert_eq!(json, "3:11: throttle.queue: the queue has to hold a cost of at least 1");
}
