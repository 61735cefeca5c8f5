use super::{Client, SECOND, client, pool, seconds};
use crate::amount::Amount;
use crate::fair::{Band, Demand};
use crate::pool::Pool;
use crate::template::{Algorithm, Template};

/// Everyone asks until nothing changes.
fn settled<const N: usize>(pool: &mut Pool, clients: &mut [Client; N]) -> [f64; N] {
    for round in 0..4 {
        for client in &mut *clients {
            client.gets(pool, round);
        }
    }
    clients.each_ref().map(|client| client.has.as_f64())
}

#[test]
fn shares_are_fair_in_any_order_of_asking() {
    let expected = [("a", 10.0), ("b", 31.0), ("c", 36.0), ("d", 36.5), ("e", 36.5)];
    let wants = [("a", 10), ("b", 31), ("c", 36), ("d", 1000), ("e", 1000)];
    for turned in 0..5 {
        let mut clients = wants.map(|(name, wants)| client(name, wants));
        clients.rotate_left(turned);
        let mut pool = pool(Template::new("*", Amount::units(150)));
        settled(&mut pool, &mut clients);
        for client in clients {
            assert!(expected.contains(&(client.name, client.has.as_f64())), "{client:?}");
        }
    }
}

#[test]
fn a_weight_is_a_part_in_relation_to_others() {
    let mut clients = [client("a", 500), client("b", 90), client("c", 10)];
    for (client, weight) in clients.iter_mut().zip([2, 1, 3]) {
        client.demands[0] = client.demands[0].weight(weight);
    }
    let mut pool = pool(Template::new("*", Amount::units(300)));
    assert_eq!(settled(&mut pool, &mut clients), [200.0, 90.0, 10.0]);
}

#[test]
fn a_band_gets_what_the_bands_before_it_leave_and_its_floor() {
    let wants = |wants, band| vec![Demand::of(Amount::units(wants)).band(band)];
    let mut clients = [client("a", 0), client("b", 0), client("c", 0)];
    clients[0].demands = wants(80, 0);
    clients[1].demands = wants(80, 1);
    clients[2].demands = wants(80, 2);
    let template = || Template::new("*", Amount::units(100));
    assert_eq!(settled(&mut pool(template()), &mut clients.clone()), [80.0, 20.0, 0.0]);

    let template = template().floor(Band(2), Amount::units(30));
    assert_eq!(settled(&mut pool(template), &mut clients), [70.0, 0.0, 30.0]);
}

#[test]
fn without_an_algorithm_everyone_gets_what_is_wanted() {
    let template = Template::new("*", Amount::ZERO).algorithm(Algorithm::None);
    let mut clients = [client("a", 10), client("b", 100)];
    assert_eq!(settled(&mut pool(template), &mut clients), [10.0, 100.0]);
}

#[test]
fn a_static_capacity_is_that_of_each_client() {
    let template = Template::new("*", Amount::units(100)).algorithm(Algorithm::Static);
    let mut clients = [client("a", 100), client("b", 10), client("c", 120)];
    assert_eq!(settled(&mut pool(template), &mut clients), [100.0, 10.0, 100.0]);
}

#[test]
fn proportional_shares_divide_what_is_left_over_by_what_is_wanted() {
    let template = Template::new("*", Amount::units(120)).algorithm(Algorithm::ProportionalShare);
    let mut clients = [client("a", 60), client("b", 60), client("c", 10)];
    assert_eq!(settled(&mut pool(template), &mut clients), [55.0, 55.0, 10.0]);
}

#[test]
fn a_server_with_many_clients_gets_what_they_would_get_of_one_pool() {
    // One server's clients want 1 and 1,000, another's wants 1,000: the two large ones share alike.
    let mut small = client("server-1", 0);
    small.demands = vec![Demand::of(Amount::units(1)), Demand::of(Amount::units(1_000))];
    let mut clients = [small, client("server-2", 1_000)];
    let mut pool = pool(Template::new("*", Amount::units(301)));
    assert_eq!(settled(&mut pool, &mut clients), [151.0, 150.0]);
}

/// Clients that want whole units and ask as often as they are told, for an hour. Returns how many units all have on average, and
/// what each has.
fn whole_units(capacity: u64, wants: &[u64]) -> (f64, Vec<f64>) {
    let mut pool = pool(Template::new("*", Amount::units(capacity)).refresh(seconds(5)));
    let mut clients: Vec<_> = wants.iter().map(|wants| (client("", *wants), 0)).collect();
    for (at, (client, _)) in clients.iter_mut().enumerate() {
        client.name = format!("client-{at}").leak();
        client.demands[0] = client.demands[0].whole();
    }
    let (from, end) = (60 * SECOND, 3_660 * SECOND);
    let mut sums = vec![0; clients.len()];
    for now in (0..end).step_by(10) {
        for (at, (client, next)) in clients.iter_mut().enumerate() {
            if now >= *next {
                let grant = client.grant(&mut pool, now);
                assert_eq!(grant.capacity, Amount::units(grant.capacity.as_units()));
                // Not all at one time.
                let wait = grant.refresh.as_millis() as u64;
                *next = now + wait - (now / 10 + at as u64 * 7) * 37 % (wait / 10 + 1);
            }
            sums[at] += if now >= from { client.has.as_units() } else { 0 };
        }
        assert!(pool.outstanding("db") <= Amount::units(capacity));
    }
    let steps = ((end - from) / 10) as f64;
    let each: Vec<_> = sums.iter().map(|sum| *sum as f64 / steps).collect();
    (each.iter().sum(), each)
}

#[test]
fn whole_units_are_all_used_and_everyone_has_a_turn() {
    for (capacity, clients, wants, least) in [
        (30, 31, 1, 29.0),
        (30, 60, 1, 28.0),
        (30, 20, 2, 28.5),
        (3, 40, 5, 2.5),
        (30, 30, 1, 30.0),
    ] {
        let (all, each) = whole_units(capacity, &vec![wants; clients]);
        assert!(all >= least, "{all} of {capacity} by {clients}");
        let share = all / clients as f64;
        assert!(
            each.iter().all(|has| (has - share).abs() <= 0.1 * share.max(0.5)),
            "{capacity} by {clients}: {each:?}"
        );
    }
    // A client that wants less than its share always has all that it wants.
    let (all, each) = whole_units(10, &[1, 2, 9, 9]);
    assert!(all >= 9.8, "{each:?}");
    assert_eq!(each[..2], [1.0, 2.0]);
}

#[test]
fn units_are_whole_in_a_band_and_beside_clients_that_take_parts() {
    let mut clients = [client("a", 2), client("b", 3), client("c", 3), client("d", 9)];
    clients[1].demands[0] = clients[1].demands[0].whole().band(1);
    clients[2].demands[0] = clients[2].demands[0].whole().band(1);
    clients[3].demands[0] = clients[3].demands[0].band(2);
    let mut pool = pool(Template::new("*", Amount::units(7)));
    let settled = settled(&mut pool, &mut clients);
    assert!([[2.0, 2.0, 3.0, 0.0], [2.0, 3.0, 2.0, 0.0]].contains(&settled), "{settled:?}");
}
