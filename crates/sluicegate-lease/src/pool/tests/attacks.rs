use proptest::prelude::*;

use super::{Client, SECOND, client, pool, release, seconds};
use crate::amount::Amount;
use crate::client::{Action, OnLoss, Session};
use crate::fair::Demand;
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
    assert_eq!(pool.outstanding("db"), Amount::units(100), "one is still there");
    pool.release(1, &release(&names[0], 2, 1));
    assert_eq!(pool.outstanding("db"), Amount::ZERO);
}

/// Ten clients that want 30 of 100 each come and go, one a second, beside a liar. Returns the least that the honest ones
/// had together after a lease.
fn least_beside(lie: impl Fn(&mut Client)) -> f64 {
    let mut pool = pool(hundred().refresh(seconds(1)));
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let mut honest = names.map(|name| client(name, 30));
    let mut liar = client("liar", 1_000);
    let mut least = f64::MAX;
    // Once it was alone, and was granted everything.
    liar.gets(&mut pool, 0);
    for second in 1..300 {
        let now = second * SECOND;
        let granted = granted_to(&mut liar, &mut pool, now);
        liar.has = granted;
        lie(&mut liar);
        for (at, one) in honest.iter_mut().enumerate() {
            // Each is away for two seconds of ten.
            if (second + at as u64) % 10 == 0 {
                one.sequence += 1;
                pool.release(now, &release(one.name, one.sequence, 1));
                one.has = Amount::ZERO;
            } else if (second + at as u64) % 10 > 1 {
                one.gets(&mut pool, now);
            }
        }
        let together: Amount = honest.iter().map(|one| one.has).sum();
        assert!(together + granted <= Amount::units(100));
        if second > 130 {
            least = least.min(together.as_f64());
        }
    }
    least
}

#[test]
fn a_client_that_claims_much_takes_nothing_from_clients_that_come_and_go() {
    let honest = least_beside(|_| {});
    assert!(honest >= 70.0, "{honest}");
    for claim in [50, 100, 1_000_000_000] {
        let least = least_beside(|liar| liar.has = Amount::units(claim));
        assert!(least >= honest, "{least} beside a claim of {claim}, {honest} beside none");
    }
}

#[test]
fn a_grant_counts_until_it_ends_though_smaller_ones_follow() {
    let mut pool = pool(hundred());
    let (mut one, mut two) = (client("one", 100), client("two", 100));
    assert_eq!(one.gets(&mut pool, 0), 100.0);
    two.gets(&mut pool, 0);
    // No answer comes any more, so it says what it had.
    for second in 1..=65 {
        one.send(&mut pool, second * SECOND).unwrap();
        assert_eq!(two.gets(&mut pool, second * SECOND), 0.0, "second {second}");
    }
    assert_eq!(pool.false_claims(), 0);
    // Its first lease has ended. If it has heard anything since, it has half.
    one.send(&mut pool, 66 * SECOND + 2).unwrap();
    assert_eq!(pool.false_claims(), 1);
    assert_eq!(two.gets(&mut pool, 66 * SECOND + 2), 50.0);
    assert_eq!(pool.outstanding("db"), Amount::units(100));
}

#[test]
fn what_is_in_use_of_a_grant_counts_for_as_long_as_it_is() {
    let mut pool = pool(hundred());
    let (mut one, mut two) = (client("one", 100), client("two", 100));
    assert_eq!(one.gets(&mut pool, 0), 100.0);
    // Requests in flight that last for minutes.
    one.outstanding = Amount::units(80);
    for second in 1..4 {
        one.gets(&mut pool, second * SECOND);
        two.gets(&mut pool, second * SECOND);
    }
    for second in 4..300 {
        one.gets(&mut pool, second * SECOND);
        assert_eq!(two.gets(&mut pool, second * SECOND), 20.0, "second {second}");
    }
    one.outstanding = Amount::units(50);
    one.gets(&mut pool, 300 * SECOND);
    assert_eq!(two.gets(&mut pool, 300 * SECOND), 50.0);
    assert_eq!(pool.false_claims(), 0);
}

#[test]
fn processes_of_one_name_hold_no_more_than_there_is() {
    for order in [[2, 3], [3, 2], [0, 2]] {
        let mut pool = pool(hundred());
        let mut twins = order.map(|instance| {
            let mut twin = Session::new("twin", 0, 0).instance(instance);
            twin.add("db", Amount::units(100), OnLoss::Stop);
            twin
        });
        for now in (0..200 * SECOND).step_by(100) {
            for twin in &mut twins {
                if let Action::Ask(request) = twin.poll(now) {
                    twin.answered(now, &pool.answer(now, &request).unwrap());
                }
            }
            let sum: Amount = twins.iter().map(|twin| twin.capacity(now, "db")).sum();
            assert!(sum <= Amount::units(100), "{sum} at {now}");
        }
        assert_eq!(
            twins.each_ref().map(|twin| twin.capacity(200 * SECOND, "db").as_units()),
            [50; 2]
        );
        let named: Vec<_> = pool.clients("db").map(|(name, ..)| name).collect();
        assert_eq!(named, ["twin"; 2]);
    }
}

#[test]
fn a_process_that_crashed_and_starts_anew_has_its_share_when_its_lease_has_ended() {
    let mut pool = pool(hundred());
    let mut ask = |instance: u64, now| {
        let mut session = Session::new("one", 0, 0).instance(instance);
        session.add("db", Amount::units(80), OnLoss::Stop);
        let Action::Ask(request) = session.poll(now) else { panic!("it asks at once") };
        session.answered(now, &pool.answer(now, &request).unwrap());
        session.capacity(now, "db").as_units()
    };
    assert_eq!(ask(2, 0), 80);
    // What is free, it has at once.
    assert_eq!(ask(3, 1), 20);
    assert_eq!(ask(4, 67 * SECOND), 80);
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

#[test]
fn asking_for_what_is_not_there_takes_no_room_from_what_is() {
    let templates = [Template::new("db", Amount::units(100)), Template::new("*", Amount::ZERO)];
    let mut pool = Pool::new(Templates::new(templates).unwrap()).bounded(1, 9);
    pool.lead(0, 1, Some(Vec::new()));
    let demands = [Demand::of(Amount::units(10))];
    let mut ask = |resource| match pool.ask(0, &Ask::new("one", resource, 1, 1, &demands)) {
        Ok(Answer::Grant(grant)) => grant.capacity.as_f64(),
        other => panic!("{other:?}"),
    };
    assert_eq!([ask("absent"), ask("missing"), ask("db")], [0.0, 0.0, 10.0]);
}
