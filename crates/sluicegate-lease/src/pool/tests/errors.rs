use super::{client, pool, release};
use crate::amount::Amount;
use crate::fair::Demand;
use crate::pool::{Ask, AskError, MAX_DEMANDS, MAX_NAME, Pool};
use crate::template::{Algorithm, Template, Templates};
use crate::{Band, Source};

fn template() -> Template {
    Template::new("*", Amount::units(1))
}

#[test]
fn a_request_that_cannot_be_right_changes_nothing() {
    let long = "x".repeat(MAX_NAME + 1);
    let one = [Demand::of(Amount::units(1))];
    let many = [one[0]; MAX_DEMANDS + 1];
    let weightless = [one[0].weight(0)];
    let right = Ask::new("one", "db", 1, 1, &one);
    let cases = [
        (Ask { client: "", ..right }, AskError::NoClient),
        (Ask { resource: "", ..right }, AskError::NoResource),
        (Ask { client: &long, ..right }, AskError::LongName),
        (Ask { resource: &long, ..right }, AskError::LongName),
        (Ask { demands: &[], ..right }, AskError::Demands(0)),
        (Ask { demands: &many, ..right }, AskError::Demands(MAX_DEMANDS + 1)),
        (Ask { demands: &weightless, ..right }, AskError::Weight(0)),
    ];
    let mut pool = pool(template());
    let longest = "ä".repeat(MAX_NAME / 2);
    assert!(pool.clone().ask(0, &Ask { client: &longest, resource: &longest, ..right }).is_ok());
    for (ask, error) in cases {
        assert_eq!(pool.ask(0, &ask), Err(error.clone()), "{error}");
    }
    assert!(pool.snapshot().is_empty());
    assert_eq!([f64::NAN, f64::INFINITY, -1.0].map(Amount::from_f64), [None; 3]);
}

#[test]
fn a_server_that_is_not_the_master_answers_nobody() {
    let mut pool = Pool::new(Templates::new([template()]).unwrap());
    assert_eq!(client("one", 1).send(&mut pool, 0), Err(AskError::NotMaster));
    pool.lead(0, 1, Some(Vec::new()));
    client("one", 1).gets(&mut pool, 0);
    // A client has met a newer master, or says so. The mastership has to find out, so others are served.
    let mut newer = client("two", 1);
    newer.fence = u64::MAX;
    assert_eq!(newer.send(&mut pool, 0), Err(AskError::NotMaster));
    client("three", 1).gets(&mut pool, 0);
    assert_eq!(pool.fence(), Some(1));
}

#[test]
fn resources_and_clients_are_bounded() {
    let mut pool = Pool::new(Templates::new([template()]).unwrap()).bounded(1, 2);
    pool.lead(0, 1, Some(Vec::new()));
    client("one", 1).gets(&mut pool, 0);
    client("two", 1).gets(&mut pool, 0);
    assert_eq!(client("three", 1).send(&mut pool, 0), Err(AskError::ManyClients));
    let other = [Demand::of(Amount::units(1))];
    let ask = Ask::new("one", "other", 9, 1, &other);
    assert_eq!(pool.ask(0, &ask), Err(AskError::ManyResources));
    // All resources count, and what is free again can be taken.
    let mut pool = Pool::new(Templates::new([template()]).unwrap()).bounded(2, 1);
    pool.lead(0, 1, Some(Vec::new()));
    client("one", 1).gets(&mut pool, 0);
    assert_eq!(pool.ask(0, &ask), Err(AskError::ManyClients));
    pool.release(1, &release("one", 9, 1));
    assert!(pool.ask(1, &ask).is_ok());
    pool.tick(100_000_000);
    client("two", 1).gets(&mut pool, 100_000_000);
}

#[test]
fn a_template_that_cannot_work_is_named() {
    let milli = std::time::Duration::from_millis;
    let hundred = || Template::new("db", Amount::units(100));
    let cases = [
        (Template::new("", Amount::ZERO), "the template `` needs a pattern, such as `db-*`"),
        (
            hundred().lease(milli(1)),
            "the template `db` needs a lease of 100 milliseconds to one day",
        ),
        (
            hundred().refresh(milli(40_000)),
            "the template `db` needs a refresh interval of at least 10 milliseconds and at most half of the lease",
        ),
        (
            hundred().learning(milli(50_000)),
            "the template `db` has a learning time that is shorter than the lease, or longer than one day: grants of \
             the last master could still be in use",
        ),
        (
            hundred().floor(Band(1), Amount::units(60)).floor(Band(2), Amount::units(60)),
            "the template `db` keeps more for its floors than there is",
        ),
        (
            hundred().floor(Band(1), Amount::units(1)).floor(Band(1), Amount::units(1)),
            "the template `db` has two floors for one band",
        ),
        (
            hundred().algorithm(Algorithm::Static).floor(Band(1), Amount::units(1)),
            "the template `db` has floors, but its algorithm does not divide the capacity",
        ),
        (
            Template::from_parent("db").algorithm(Algorithm::None),
            "the template `db` leases its capacity from a parent, so its algorithm has to divide it: a fair or \
             proportional share",
        ),
    ];
    for (template, message) in cases {
        let error = Templates::new([template, self::template()]).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let message = |templates: Vec<Template>| Templates::new(templates).unwrap_err().to_string();
    let default = "the template `*` is missing: the last template has to match every name";
    assert_eq!(message(vec![]), default);
    assert_eq!(message(vec![hundred()]), default);
    assert_eq!(message(vec![hundred(), hundred(), template()]), "the template `db` is given twice");
    assert_eq!(
        message(vec![template(), hundred()]),
        "the template `*` matches every name, so it has to be the last"
    );
}

#[test]
fn a_name_wins_over_a_pattern_and_an_earlier_pattern_over_a_later_one() {
    let templates = ["db-*", "db-?", "db-1", "*"].map(|pattern| {
        Template::new(
            pattern,
            Amount::units(pattern.len() as u64 * 100 + u64::from(pattern == "db-?")),
        )
    });
    let templates = Templates::new(templates).unwrap();
    let pattern_of = |name| &*templates.of(name).pattern;
    assert_eq!(["db-1", "db-2", "cache"].map(pattern_of), ["db-1", "db-*", "*"]);
    assert_eq!(templates.of("db-1").source, Source::Own(Amount::units(400)));
}
