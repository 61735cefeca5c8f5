use std::time::Duration;

use super::{Client, SECOND, client, pool, release, seconds};
use crate::amount::Amount;
use crate::pool::{AskError, Change};
use crate::template::Template;

fn hundred() -> Template {
    Template::new("*", Amount::units(100)).lease(seconds(64)).refresh(seconds(4))
}

#[test]
fn nobody_gets_what_another_may_still_use() {
    let mut pool = pool(hundred());
    let mut one = client("one", 100);
    let mut two = client("two", 100);
    assert_eq!(one.gets(&mut pool, 0), 100.0);
    assert_eq!(two.gets(&mut pool, 0), 0.0);
    // The answer that takes half from the first client is lost: it goes on with all.
    one.send(&mut pool, SECOND).unwrap();
    assert_eq!(two.gets(&mut pool, SECOND), 0.0);
    // Its lease ends 64 s after that, and one part in 64 later in case that its clock is slow.
    assert_eq!(two.gets(&mut pool, 66 * SECOND + 1), 0.0);
    assert_eq!(two.gets(&mut pool, 66 * SECOND + 2), 100.0);
}

#[test]
fn a_client_that_is_told_to_use_less_says_so_at_once() {
    let mut pool = pool(hundred());
    let mut one = client("one", 100);
    let mut two = client("two", 100);
    assert_eq!(one.grant(&mut pool, 0).refresh, seconds(4));
    // Half of the capacity will be its own, so it asks more often.
    assert_eq!(two.grant(&mut pool, 0).refresh, seconds(1));
    assert_eq!(one.grant(&mut pool, 4 * SECOND).refresh, Duration::from_millis(10));
    assert_eq!(one.grant(&mut pool, 4 * SECOND + 10).refresh, seconds(4));
    assert_eq!(two.gets(&mut pool, 5 * SECOND), 50.0);
}

#[test]
fn a_request_that_comes_late_or_twice_changes_nothing() {
    let mut pool = pool(hundred());
    let mut one = client("one", 100);
    let mut early: Client = one.clone();
    assert_eq!(one.gets(&mut pool, 0), 100.0);
    assert_eq!(one.gets(&mut pool, 1), 100.0);
    // It says that the client has nothing, which was so once.
    assert_eq!(early.send(&mut pool, 2), Err(AskError::Stale));
    assert_eq!(client("two", 100).gets(&mut pool, 2), 0.0);
    // Nor does a release that was sent before.
    pool.release(3, &release("one", 2, 1));
    assert_eq!(pool.outstanding("db"), Amount::units(100));
}

#[test]
fn what_is_released_is_free_at_once() {
    let mut pool = pool(hundred());
    let mut one = client("one", 100);
    one.gets(&mut pool, 0);
    pool.release(1, &release("one", 2, 1));
    pool.release(1, &release("one", 3, 1));
    assert_eq!(client("two", 100).gets(&mut pool, 1), 100.0);
}

/// Nobody is there any more who could give it back.
#[test]
fn a_request_that_its_release_has_overtaken_holds_one_lease_and_no_more() {
    let mut pool = pool(hundred());
    let mut one = client("one", 100);
    one.gets(&mut pool, 0);
    pool.release(1, &release("one", 3, 1));
    assert_eq!(one.gets(&mut pool, 1), 100.0);
    let mut two = client("two", 100);
    assert_eq!(two.gets(&mut pool, 65 * SECOND + 2), 0.0);
    assert_eq!(two.gets(&mut pool, 65 * SECOND + 3), 100.0);
}

#[test]
fn who_has_come_and_gone_is_told_once() {
    let mut pool = pool(hundred());
    let mut one = client("one", 1);
    one.gets(&mut pool, 0);
    one.gets(&mut pool, 1);
    let (resource, name): (Box<str>, Box<str>) = ("db".into(), "one".into());
    let joined = Change::Add { resource: resource.clone(), client: name.clone() };
    assert_eq!(pool.take_changes().collect::<Vec<_>>(), [joined]);
    pool.tick(200 * SECOND);
    pool.tick(201 * SECOND);
    let left = Change::Remove { resource, client: name };
    assert_eq!(pool.take_changes().collect::<Vec<_>>(), [left]);
    assert!(pool.snapshot().is_empty(), "a resource that nobody uses takes no room");
}

#[test]
fn a_safe_capacity_is_configured_or_what_there_is_for_each_client() {
    let mut configured = pool(hundred().safe(Amount::units(7)));
    assert_eq!(client("one", 1).grant(&mut configured, 0).safe, Amount::units(7));
    let mut divided = pool(hundred());
    client("one", 1).gets(&mut divided, 0);
    assert_eq!(client("two", 1).grant(&mut divided, 0).safe, Amount::units(50));
}

#[test]
fn after_a_change_of_capacity_everyone_has_a_fair_share_of_the_new_one() {
    let mut pool = pool(hundred());
    let mut clients = [client("one", 100), client("two", 100)];
    for now in 0..4 {
        for client in &mut clients {
            client.gets(&mut pool, now);
        }
    }
    assert_eq!(clients.each_ref().map(|client| client.has), [Amount::units(50); 2]);
    let smaller = Template::new("*", Amount::units(40)).lease(seconds(64)).refresh(seconds(4));
    pool.set_templates(crate::Templates::new([smaller]).unwrap());
    // Nobody is left with nothing while others still have their old share.
    assert_eq!(clients.each_mut().map(|client| client.gets(&mut pool, 10)), [20.0; 2]);
}

#[test]
fn a_clock_that_steps_back_lengthens_nothing() {
    let mut pool = pool(hundred());
    client("one", 100).gets(&mut pool, 100 * SECOND);
    assert_eq!(client("two", 100).gets(&mut pool, 0), 0.0);
}

#[test]
fn what_safe_capacities_sum_up_to_is_reported() {
    for (template, expected) in [(hundred().safe(Amount::units(30)), 150), (hundred(), 100)] {
        let mut pool = pool(template);
        for name in ["a", "b", "c", "d", "e"] {
            client(name, 1).gets(&mut pool, 0);
        }
        assert_eq!(pool.snapshot()[0].safe, Amount::units(expected));
    }
}
