use proptest::prelude::*;

use super::{Client, SECOND, client, pool, release, seconds};
use crate::amount::Amount;
use crate::demand::Demand;
use crate::pool::{Answer, Ask, AskError, Pool};
use crate::template::{Algorithm, Template, Templates};

fn hundred() -> Template {
    Template::new("*", Amount::units(100)).lease(seconds(64)).refresh(seconds(4))
}

/// A pool of which one client holds everything.
fn taken() -> (Pool, Client) {
    let mut pool = pool(hundred());
    let mut honest = client("honest", 100);
    assert_eq!(honest.gets(&mut pool, 0), 100.0);
    (pool, honest)
}

/// A client that is granted something, and does not care.
fn granted_to(liar: &mut Client, pool: &mut Pool, now: u64) -> Amount {
    match liar.send(pool, now) {
        Ok(Answer::Grant(grant)) => grant.capacity,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_that_lies_about_what_it_has_is_granted_nothing_for_it() {
    let (mut pool, _) = taken();
    let mut liar = client("liar", 100);
    liar.has = Amount::MAX;
    for now in 1..5 {
        assert_eq!(granted_to(&mut liar, &mut pool, now), Amount::ZERO);
    }
    // So is one that goes on without a lease, and does not hear the answers.
    (liar.has, liar.outstanding) = (Amount::ZERO, Amount::units(50));
    assert_eq!(granted_to(&mut liar, &mut pool, 5), Amount::ZERO);
}

#[test]
fn a_client_that_says_it_is_a_server_that_learns_is_granted_nothing_for_it() {
    let (mut pool, _) = taken();
    let mut liar = client("liar", 100);
    (liar.has, liar.learning) = (Amount::MAX, true);
    for now in 1..5 {
        assert_eq!(granted_to(&mut liar, &mut pool, now), Amount::ZERO);
    }
}

#[test]
fn lies_of_many_clients_leave_nothing_behind() {
    let mut pool = pool(hundred());
    let wants = [Demand::of(Amount::MAX)];
    let names: Vec<_> = (0..30_000).map(|number| format!("liar-{number}")).collect();
    for name in &names {
        let ask = Ask { has: Amount::MAX, ..Ask::new(name, "db", 1, 1, &wants) };
        pool.ask(0, &ask).unwrap();
    }
    for name in &names[1..] {
        pool.release(1, &release(name, 2, 1));
    }
    assert_eq!(pool.outstanding("db"), Amount::MAX, "one is still there");
    pool.release(1, &release(&names[0], 2, 1));
    assert_eq!(pool.outstanding("db"), Amount::ZERO);
}

#[test]
fn the_largest_weights_do_not_cost_a_server_its_lease() {
    let mut child = pool(hundred());
    let largest = 100_000_000_000;
    for name in ["one", "two"] {
        let mut heavy = client(name, 50);
        heavy.demands[0].want.weight = largest;
        heavy.gets(&mut child, 0);
    }
    let mut server = client("server", 0);
    server.demands = child.demands("db");
    assert_eq!(server.demands[0].want.weight, largest);
    assert_eq!(server.gets(&mut pool(hundred()), 0), 100.0);
}

#[test]
fn a_resource_that_is_leased_may_get_any_other_template() {
    let others = [
        hundred(),
        Template::new("*", Amount::ZERO),
        Template::new("*", Amount::units(40))
            .lease(seconds(1))
            .refresh(seconds(0) + seconds(1) / 4),
        Template::new("*", Amount::units(10)).algorithm(Algorithm::Static),
        Template::new("*", Amount::units(40)).algorithm(Algorithm::ProportionalShare),
        Template::from_parent("*"),
    ];
    let named = Template::new("db", Amount::units(100)).lease(seconds(64)).refresh(seconds(4));
    for other in others {
        let mut pool = Pool::new(Templates::new([named.clone(), hundred()]).unwrap());
        pool.lead(0, 1, Some(Vec::new()));
        let (mut one, mut two) = (client("one", 60), client("two", 60));
        for now in 0..4 {
            one.gets(&mut pool, now);
            two.gets(&mut pool, now);
        }
        // The template of this resource is gone, and the last one is another.
        pool.set_templates(Templates::new([other.clone()]).unwrap());
        for now in 4..8 {
            two.gets(&mut pool, now);
            assert!(one.has + two.has <= Amount::units(100), "{other:?}");
        }
        // What the other one heard before stays its own until it asks again, or its lease ends.
        assert!(pool.outstanding("db") >= one.has + two.has, "{other:?}");
        pool.set_templates(Templates::new([named.clone(), hundred()]).unwrap());
        for now in 8..12 {
            two.gets(&mut pool, now);
            assert!(one.has + two.has <= Amount::units(100), "{other:?}");
        }
    }
}

#[test]
fn a_clock_that_jumps_to_the_end_of_time_breaks_nothing() {
    for jump in [u64::MAX, u64::MAX - 1, u64::MAX / 2] {
        let (mut pool, _) = taken();
        pool.tick(jump);
        client("two", 60).gets(&mut pool, jump);
        client("three", 60).gets(&mut pool, jump);
        assert!(pool.outstanding("db") <= Amount::units(100));
        pool.tick(0);
        pool.lead(jump, 2, None);
    }
}

#[test]
fn clients_that_never_release_are_forgotten_with_their_leases() {
    let mut pool = pool(hundred()).bounded(10, 1_000);
    let wants = [Demand::of(Amount::units(1))];
    for round in 0..100_u64 {
        let now = round * 66 * SECOND;
        for number in 0..1_000 {
            let name = format!("client-{round}-{number}");
            pool.ask(now, &Ask::new(&name, "db", 1, 1, &wants)).unwrap();
        }
        pool.tick(now + 66 * SECOND - 1);
        assert!(pool.snapshot().is_empty());
    }
}

#[test]
fn a_client_that_sends_the_largest_number_is_stale_until_its_lease_ends_and_no_longer() {
    let mut pool = pool(hundred());
    let mut liar = Client { sequence: u64::MAX - 1, ..client("liar", 100) };
    assert_eq!(liar.gets(&mut pool, 0), 100.0);
    for now in [1, 30 * SECOND, 63 * SECOND] {
        let mut again = Client { sequence: u64::MAX - 1, ..liar.clone() };
        assert_eq!(again.send(&mut pool, now), Err(AskError::Stale));
        pool.release(now, &release("liar", u64::MAX, 1));
        assert_eq!(pool.outstanding("db"), Amount::units(100));
    }
    // Its tries have not prolonged the lease.
    pool.tick(66 * SECOND);
    assert_eq!(pool.outstanding("db"), Amount::ZERO);
    assert_eq!(client("liar", 100).gets(&mut pool, 66 * SECOND), 100.0);
}

/// What a liar may say.
fn lie() -> impl Strategy<Value = (u8, [u64; 5], bool)> {
    let number = || prop_oneof![0..200_000_000_u64, Just(0), Just(u64::MAX), any::<u64>()];
    let numbers =
        [number().boxed(), number().boxed(), number().boxed(), number().boxed(), number().boxed()];
    (0..4_u8, numbers, any::<bool>())
}

proptest! {
    #[test]
    fn whatever_liars_say_leases_are_within_the_capacity(
        steps in prop::collection::vec((lie(), 0..3_u8, 0..100_u64, 0..500_u64), 1..80),
    ) {
        let mut pool = pool(hundred());
        let mut honest = [client("one", 0), client("two", 0)];
        let mut now = 0;
        for ((who, [wants, weight, has, outstanding, sequence], learning), ask, honest_wants, wait) in steps {
            now += wait;
            let name = ["liar", "one's twin", "x", "y"][usize::from(who)];
            let wants = [Demand::of(Amount::from_millionths(wants)).weight(weight as u32)];
            let lie = Ask {
                has: Amount::from_millionths(has),
                outstanding: Amount::from_millionths(outstanding),
                learning,
                ..Ask::new(name, "db", sequence, sequence % 3, &wants)
            };
            let _ = pool.ask(now, &lie);
            if let Some(client) = honest.get_mut(usize::from(ask)) {
                client.demands = vec![Demand::of(Amount::units(honest_wants))];
                client.gets(&mut pool, now);
            }
            pool.tick(now);
            prop_assert!(honest[0].has + honest[1].has <= Amount::units(100));
        }
    }
}
