use super::{SECOND, client, pool, seconds};
use crate::amount::Amount;
use crate::fair::Demand;
use crate::pool::{Answer, MAX_DEMANDS, Pool};
use crate::template::{Template, Templates};

fn hundred() -> Template {
    Template::new("*", Amount::units(100)).lease(seconds(64)).refresh(seconds(4))
}

/// What a second server gets after the first one, whose own clients may use 100, was told to use less.
fn part_of_second_server(now: u64, outstanding: u64) -> f64 {
    let mut pool = pool(hundred());
    let mut first = client("first", 100);
    first.gets(&mut pool, 0);
    let mut second = client("second", 100);
    second.gets(&mut pool, 0);
    first.outstanding = Amount::units(outstanding);
    first.gets(&mut pool, SECOND);
    first.gets(&mut pool, SECOND);
    second.gets(&mut pool, now)
}

#[test]
fn a_parent_counts_what_a_servers_clients_may_still_use() {
    assert_eq!(part_of_second_server(2 * SECOND, 100), 0.0);
    assert_eq!(part_of_second_server(2 * SECOND, 0), 50.0);
}

/// A server with a lease of 100 until 10 s.
fn child() -> Pool {
    let template = Template::from_parent("*").lease(seconds(64)).refresh(seconds(4));
    let mut pool = Pool::new(Templates::new([template]).unwrap());
    pool.lead(0, 1, Some(Vec::new()));
    // The resource comes into being with its first client.
    assert_eq!(client("first", 100).gets(&mut pool, 0), 0.0);
    pool.supply("db", Amount::units(100), 10 * SECOND);
    pool
}

#[test]
fn no_lease_outlives_the_lease_that_it_is_cut_from() {
    let grant = client("one", 30).grant(&mut child(), 4 * SECOND);
    assert_eq!((grant.capacity, grant.ttl), (Amount::units(30), seconds(6)));
}

#[test]
fn a_server_without_a_lease_has_nothing_to_give() {
    let mut child = child();
    let grant = client("one", 30).grant(&mut child, 10 * SECOND);
    assert_eq!((grant.capacity, grant.ttl, grant.refresh), (Amount::ZERO, seconds(0), seconds(1)));
}

#[test]
fn a_server_that_is_learning_keeps_what_it_had_at_its_parent() {
    let after_election = |is_learning| {
        let mut pool = pool(hundred());
        let mut server = client("server", 100);
        server.gets(&mut pool, 0);
        // Its new master knows nothing yet, neither what it has nor what is wanted.
        let mut learning = client("server", 0);
        (learning.sequence, learning.learning) = (100, is_learning);
        (learning.gets(&mut pool, SECOND), client("other", 100).gets(&mut pool, SECOND))
    };
    assert_eq!(after_election(true), (100.0, 0.0));
    assert_eq!(after_election(false), (0.0, 100.0));
}

#[test]
fn a_learning_server_reports_nothing_to_a_learning_parent() {
    let mut pool = Pool::new(Templates::new([hundred()]).unwrap());
    pool.lead(0, 2, None);
    let mut server = client("server", 0);
    (server.fence, server.learning) = (2, true);
    assert_eq!(server.send(&mut pool, 0), Ok(Answer::Keep(seconds(1))));
    assert!(pool.is_learning("db"));
}

#[test]
fn demands_of_many_clients_are_few() {
    let mut pool = pool(hundred()).bounded(10, 10_000);
    for client in 0..500_u64 {
        let band = (client % 7) as u8;
        let wants = [Demand::of(Amount::from_millionths(1 << (client % 50))).band(band)];
        let name = format!("client-{client}");
        pool.ask(0, &crate::pool::Ask::new(&name, "db", 1, 1, &wants)).unwrap();
    }
    let demands = pool.demands("db");
    assert!(demands.len() <= MAX_DEMANDS);
    assert_eq!(demands.iter().map(|demand| demand.want.weight).sum::<u64>(), 500);
    let wanted: Amount = demands.iter().map(|demand| demand.want.wants).sum();
    assert_eq!(wanted, pool.snapshot()[0].wanted);
}

/// What a server with a client for each want tells its parent that is wanted in a band.
fn told(wants: impl Iterator<Item = Demand>) -> impl Fn(u8) -> (Amount, usize) {
    let mut pool = pool(hundred());
    for (number, demand) in wants.enumerate() {
        let name = format!("client-{number}");
        pool.ask(0, &crate::pool::Ask::new(&name, "db", 1, 1, &[demand])).unwrap();
    }
    let demands = pool.demands("db");
    assert!(demands.len() <= MAX_DEMANDS);
    move |band| {
        let in_band = demands.iter().filter(|demand| demand.band.0 == band);
        (in_band.clone().map(|demand| demand.want.wants).sum(), in_band.count())
    }
}

#[test]
fn what_is_wanted_in_a_band_is_told_in_that_band() {
    let of_bands = |bands: u8, powers: u32| {
        (0..bands).flat_map(move |band| {
            (0..powers).map(move |power| Demand::of(Amount::units(1 << power)).band(band))
        })
    };
    let all = Amount::units((1 << 16) - 1);
    // The 16 groups too many are those of the last band, and one of the band before it.
    let few = told(of_bands(5, 16));
    assert_eq!([0, 1, 2, 3, 4].map(few), [(all, 16), (all, 16), (all, 16), (all, 15), (all, 1)]);
    let many = told(of_bands(64, 16));
    assert!((0..64).all(|band| many(band) == (all, 1)));
    // Of more bands than demands, the least critical ones are one.
    let too_many = told(of_bands(70, 2));
    assert!((0..63).all(|band| too_many(band) == (Amount::units(3), 1)));
    assert_eq!(
        [63, 68, 69].map(too_many),
        [(Amount::ZERO, 0), (Amount::ZERO, 0), (Amount::units(21), 1)]
    );
}
