use super::{SECOND, client, pool, release, seconds};
use crate::amount::Amount;
use crate::pool::{Answer, AskError, Change, LeaseHolder, Pool};
use crate::template::{Template, Templates};

fn hundred() -> Template {
    Template::new("*", Amount::units(100)).lease(seconds(64)).refresh(seconds(4))
}

fn new_master(known: Option<&[&str]>) -> Pool {
    let mut pool = Pool::new(Templates::new([hundred()]).unwrap());
    let known = known.map(|known| {
        known
            .iter()
            .map(|name| LeaseHolder { resource: "db".into(), client: (*name).into() })
            .collect()
    });
    pool.lead(0, 2, known);
    pool
}

#[test]
fn a_new_master_lets_clients_keep_what_they_have_and_gives_newcomers_nothing() {
    let mut pool = new_master(None);
    let mut old = client("old", 100);
    old.has = Amount::units(60);
    old.fence = 2;
    let mut newcomer = client("newcomer", 100);
    newcomer.fence = 2;
    assert_eq!(newcomer.gets(&mut pool, 0), 0.0);
    assert_eq!(old.gets(&mut pool, 0), 60.0);
    assert_eq!(old.gets(&mut pool, 30 * SECOND), 60.0);
    assert!(pool.is_learning("db"));
    // After a lease, nobody can have anything that was not told.
    assert_eq!(newcomer.gets(&mut pool, 65 * SECOND + 1), 0.0);
    assert_eq!(newcomer.gets(&mut pool, 65 * SECOND + 2), 40.0);
}

#[test]
fn learning_ends_as_soon_as_all_known_clients_have_reported() {
    let mut pool = new_master(Some(&["one", "two"]));
    let mut newcomer = client("newcomer", 100);
    newcomer.fence = 2;
    assert_eq!(newcomer.gets(&mut pool, 0), 0.0);
    for name in ["one", "two"] {
        assert!(pool.is_learning("db"));
        let mut known = client(name, 10);
        (known.fence, known.has) = (2, Amount::units(10));
        assert_eq!(known.gets(&mut pool, 1), 10.0);
    }
    assert_eq!(newcomer.gets(&mut pool, 2), 80.0);
}

#[test]
fn clients_that_have_another_name_at_each_master_keep_what_they_have() {
    let mut pool = Pool::new(Templates::new([hundred()]).unwrap());
    pool.set_renamed("envoy/");
    let known = [("db", "envoy/1/7"), ("db", "one"), ("mail", "one")];
    let holder = |(resource, client): (&str, &str)| LeaseHolder {
        resource: resource.into(),
        client: client.into(),
    };
    pool.lead(0, 2, Some(known.map(holder).into()));
    for (name, has) in [("one", 10), ("envoy/2/3", 50)] {
        let mut client = client(name, 100);
        (client.fence, client.has) = (2, Amount::units(has));
        assert_eq!(client.gets(&mut pool, 1), has as f64);
    }
    // Nobody knows whether another name of an Envoy is still to come.
    assert!(pool.is_learning("db"));
    let mut newcomer = client("newcomer", 100);
    newcomer.fence = 2;
    assert_eq!(newcomer.gets(&mut pool, 63 * SECOND), 0.0);
    assert!(newcomer.gets(&mut pool, 65 * SECOND + 2) > 0.0);
}

#[test]
fn a_known_client_that_releases_has_reported() {
    let mut pool = new_master(Some(&["one"]));
    // This one is from before the election, perhaps from an earlier life of the client.
    pool.release(1, &release("one", 9, 1));
    assert!(pool.is_learning("db"));
    pool.release(1, &release("one", 10, 2));
    let mut newcomer = client("newcomer", 100);
    newcomer.fence = 2;
    assert_eq!(newcomer.gets(&mut pool, 2), 100.0);
}

fn remove(client: &str) -> Change {
    Change::Remove { resource: "db".into(), client: client.into() }
}

/// Each later master would wait for it for a whole lease.
#[test]
fn a_known_client_that_never_comes_is_taken_out_of_the_list() {
    for renamed in ["envoy/", "dead"] {
        let mut pool = Pool::new(Templates::new([hundred()]).unwrap());
        pool.set_renamed(renamed);
        let known = ["dead", "lost", "one"]
            .map(|name| LeaseHolder { resource: "db".into(), client: name.into() });
        pool.lead(0, 2, Some(known.into()));
        let mut one = client("one", 10);
        (one.fence, one.has) = (2, Amount::units(10));
        for now in [0, 60 * SECOND] {
            one.gets(&mut pool, now);
        }
        pool.tick(60 * SECOND);
        let add = Change::Add { resource: "db".into(), client: "one".into() };
        assert_eq!(pool.take_changes().collect::<Vec<_>>(), [add]);
        // It has met this master, and gives back what the last one granted it.
        pool.release(60 * SECOND, &release("lost", 9, 2));
        assert_eq!(pool.take_changes().collect::<Vec<_>>(), [remove("lost")]);
        pool.tick(66 * SECOND);
        assert_eq!(pool.take_changes().collect::<Vec<_>>(), [remove("dead")]);
        // The one that is here is taken out once, when its lease has ended.
        pool.tick(130 * SECOND);
        assert_eq!(pool.take_changes().collect::<Vec<_>>(), [remove("one")]);
        assert_eq!(pool.snapshot(), []);
    }
}

#[test]
fn a_known_client_that_comes_as_learning_ends_stays_in_the_list() {
    let mut pool = new_master(Some(&["dead", "late"]));
    let mut late = client("late", 10);
    late.fence = 2;
    late.gets(&mut pool, 66 * SECOND);
    pool.tick(66 * SECOND);
    let changes: Vec<_> = pool.take_changes().collect();
    assert!(!changes.contains(&remove("late")), "{changes:?}");
    assert!(changes.contains(&remove("dead")), "{changes:?}");
}

#[test]
fn a_resource_that_nobody_had_needs_no_learning() {
    let mut pool = new_master(Some(&[]));
    assert_eq!(client("one", 100).gets(&mut pool, 0), 100.0);
}

#[test]
fn a_request_from_before_the_election_reports_nothing() {
    let mut pool = new_master(Some(&["one"]));
    // The client sent this to the last master, and got 100 from it since.
    let mut early = client("one", 100);
    assert_eq!(early.send(&mut pool, 0), Ok(Answer::AskAgain));
    assert!(pool.is_learning("db"));
    let mut one = client("one", 100);
    (one.sequence, one.fence, one.has) = (7, 2, Amount::units(100));
    assert_eq!(one.gets(&mut pool, 1), 100.0);
    assert!(!pool.is_learning("db"));
    assert_eq!(early.send(&mut pool, 2), Err(AskError::Stale));
    let mut two = client("two", 100);
    two.fence = 2;
    assert_eq!(two.gets(&mut pool, 3), 0.0);
}

#[test]
fn nobody_gets_more_than_wanted_while_the_master_learns() {
    let mut pool = new_master(None);
    let mut old = client("old", 20);
    (old.fence, old.has) = (2, Amount::units(60));
    assert_eq!(old.gets(&mut pool, 0), 20.0);
}

#[test]
fn a_master_that_steps_down_forgets_everything() {
    let mut pool = pool(hundred());
    client("one", 100).gets(&mut pool, 0);
    pool.step_down();
    assert_eq!(pool.fence(), None);
    assert_eq!(pool.outstanding("db"), Amount::ZERO);
}

#[test]
fn with_the_old_lease_as_its_learning_time_a_shorter_lease_is_safe() {
    let newcomer_gets = |template: Template| {
        let mut pool = Pool::new(Templates::new([template]).unwrap());
        pool.lead(0, 2, None);
        let mut newcomer = client("newcomer", 100);
        newcomer.fence = 2;
        newcomer.gets(&mut pool, 0);
        newcomer.gets(&mut pool, 10 * SECOND)
    };
    // A client of the last master may have got 100 for 64 seconds.
    let shorter = || hundred().lease(seconds(8));
    assert_eq!(newcomer_gets(shorter().learning(seconds(64))), 0.0);
    assert_eq!(newcomer_gets(shorter()), 100.0, "it cannot know");
}

#[test]
fn while_a_master_learns_nobody_gets_more_than_there_is_for_saying_so() {
    let mut pool = new_master(None);
    let mut liar = client("liar", 1_000_000);
    (liar.fence, liar.has) = (2, Amount::MAX);
    assert_eq!(liar.gets(&mut pool, 0), 100.0);
    liar.has = Amount::MAX;
    assert_eq!(liar.gets(&mut pool, 30 * SECOND), 100.0);
    // Nor afterwards, if it says that it is a server which has lost its memory.
    (liar.has, liar.learning) = (Amount::MAX, true);
    assert_eq!(liar.gets(&mut pool, 66 * SECOND), 100.0);
}

#[test]
fn who_is_not_on_the_list_of_known_clients_gets_nothing_for_saying_that_it_has_something() {
    let mut pool = new_master(Some(&["one"]));
    let mut liar = client("liar", 100);
    for now in 0..3 {
        (liar.fence, liar.has) = (2, Amount::units(100));
        assert_eq!(liar.gets(&mut pool, now), 0.0);
    }
    assert!(pool.is_learning("db"));
    // It gives back what it never had. One that is known keeps what it has.
    liar.gets(&mut pool, 3);
    let mut one = client("one", 80);
    (one.fence, one.has) = (2, Amount::units(80));
    assert_eq!(one.gets(&mut pool, 4), 80.0);
}
