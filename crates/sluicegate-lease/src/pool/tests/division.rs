use super::{Client, client, pool};
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
