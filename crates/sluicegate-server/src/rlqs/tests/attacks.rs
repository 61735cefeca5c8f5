//! What Envoys, files and clients of leases may do beyond the ordinary.

use std::sync::Arc;
use std::time::Duration;

use crate::capacity::{BucketId, Capacities};
use crate::rlqs::assignment::Assignment;
use crate::rlqs::quotas::{
    MAX_BUCKETS, MAX_STREAMS, MOST_SPARED, Order, Quotas, ReportError, StreamId,
};
use crate::rlqs::unit::BucketUsage;
use sluicegate_lease::pool::{Answer, Ask};
use sluicegate_lease::{Amount, Demand, Pool};

const SECOND: u64 = 1_000;

struct Server {
    quotas: Quotas,
    pool: Pool,
    now: u64,
}

fn capacities(text: &str) -> Arc<Capacities> {
    Arc::new(Capacities::read(text).unwrap_or_else(|error| panic!("{error}")))
}

const ONE: &str = "[[capacity]]\nname = \"db\"\nlimit = \"1000/second burst 100\"\n\
    [[capacity.envoy]]\ndomain = \"gold\"\nbucket = { service = \"db\" }\nweight = 3\n\
    [[capacity.envoy]]\ndomain = \"basic\"\nbucket = { service = \"db\" }\n";
const EACH: &str = "[[capacity]]\nname = \"each\"\nlimit = \"1000/second burst 100\"\n\
    [[capacity.envoy]]\ndomain = \"gold\"\nbucket = { service = \"*\" }\n";

impl Server {
    fn new(text: &str) -> Self {
        let capacities = capacities(text);
        let mut pool = Pool::new(capacities.templates().clone());
        pool.lead(0, 1, Some(Vec::new()));
        Self { quotas: Quotas::new(capacities), pool, now: 0 }
    }

    fn reload(&mut self, text: &str) {
        let capacities = capacities(text);
        self.pool.set_templates(capacities.templates().clone());
        self.quotas.set_capacities(capacities);
    }

    fn open(&mut self, name: Option<&str>) -> StreamId {
        self.quotas.open(name).expect("a stream")
    }

    /// Reports that `denied` requests have come since the last report.
    fn report(
        &mut self,
        now: u64,
        stream: StreamId,
        domain: &str,
        service: &str,
        denied: u64,
    ) -> usize {
        let used = BucketUsage { allowed: 0, denied, elapsed: Duration::from_secs(5) };
        let reported =
            self.quotas.report(now, stream, domain, [(id(service), used)], &mut self.pool);
        reported.expect("a domain")
    }

    /// What streams are told, by rate: `None` to forget.
    fn told(&mut self) -> Vec<(StreamId, Option<f64>)> {
        let orders = self.quotas.orders();
        let told = orders.flat_map(|(stream, orders)| {
            orders.into_iter().map(move |order| (stream, rate(&order)))
        });
        told.collect()
    }

    /// Everyone wants as much as this, and reports each 5 seconds.
    fn run(&mut self, time: u64, everyone: &[(StreamId, &str, u64)]) -> Vec<Option<f64>> {
        let mut last = vec![None; everyone.len()];
        let end = self.now + time;
        while self.now <= end {
            let now = self.now;
            self.now += 100;
            if now.is_multiple_of(5 * SECOND) {
                for (stream, domain, wants) in everyone {
                    self.report(now, *stream, domain, "db", 5 * wants);
                }
            }
            self.pool.tick(now);
            self.quotas.tick(now, &mut self.pool);
            for (stream, rate) in self.told() {
                let at = everyone.iter().position(|(other, ..)| *other == stream).expect("it");
                last[at] = rate;
            }
        }
        last
    }
}

fn id(service: &str) -> BucketId {
    BucketId::from([("service".into(), service.into())])
}

fn rate(order: &Order) -> Option<f64> {
    order.assignment.map(|(assignment, _)| match assignment {
        Assignment::Nothing => 0.0,
        Assignment::Tokens { fill, seconds, .. } => f64::from(fill) / f64::from(seconds),
    })
}

#[test]
fn a_weight_of_three_gets_three_times_as_much() {
    let mut server = Server::new(ONE);
    let (gold, basic) = (server.open(None), server.open(None));
    let told = server.run(30 * SECOND, &[(gold, "gold", 5_000), (basic, "basic", 5_000)]);
    assert_eq!(told, [Some(750.0), Some(250.0)]);
}

#[test]
fn clients_of_leases_and_envoys_share_one_pool() {
    let mut server = Server::new(ONE);
    let demands = [Demand::of(Amount::units(400))];
    let ask = Ask::new("program", "db", 1, 1, &demands);
    let Ok(Answer::Grant(grant)) = server.pool.ask(0, &ask) else { panic!("no lease") };
    assert_eq!(grant.capacity, Amount::units(400));
    let envoy = server.open(None);
    let told = server.run(5 * SECOND, &[(envoy, "basic", 5_000)]);
    assert_eq!(told, [Some(600.0)]);
    // The program ends; what it had is the Envoy's once its lease has ended.
    let told = server.run(60 * SECOND, &[(envoy, "basic", 5_000)]);
    assert_eq!(told, [Some(1_000.0)]);
}

#[test]
fn counts_without_end_are_a_demand_like_others() {
    let mut server = Server::new(ONE);
    let (liar, honest) = (server.open(None), server.open(None));
    let told = server.run(30 * SECOND, &[(liar, "basic", u64::MAX / 5), (honest, "basic", 400)]);
    assert_eq!(told[0], Some(600.0));
    assert!(told[1].is_some_and(|rate| rate >= 395.0), "{told:?}");
}

#[test]
fn streams_and_buckets_have_a_bound() {
    let mut server = Server::new(EACH);
    let stream = server.open(None);
    let ignored: usize = (0..MAX_BUCKETS + 5)
        .map(|number| server.report(0, stream, "gold", &number.to_string(), 1))
        .sum();
    assert_eq!((ignored, server.quotas.buckets()), (5, MAX_BUCKETS));
    for _ in 1..MAX_STREAMS {
        server.open(None);
    }
    assert_eq!(server.quotas.open(None), Err(ReportError::ManyStreams));
    server.quotas.close(stream);
    assert!(server.quotas.open(None).is_ok());
}

#[test]
fn values_that_clients_choose_take_no_place_of_a_bucket_that_the_file_names() {
    let mut server = Server::new(&format!("{ONE}{EACH}"));
    let stream = server.open(None);
    for number in 0..MAX_BUCKETS {
        server.report(0, stream, "gold", &number.to_string(), 1);
    }
    server.told();
    assert_eq!(server.report(0, stream, "gold", "one more", 1), 1);
    assert_eq!(server.report(0, stream, "gold", "db", 500), 0);
    let told = server.told();
    assert!(matches!(told[..], [(_, Some(rate))] if rate >= 100.0), "{told:?}");
}

/// An Envoy reports all buckets that it was not told to forget. Their number would grow until no report can be read.
#[test]
fn a_bucket_that_is_ignored_is_forgotten_when_it_is_not_used_or_one_of_many() {
    let mut server = Server::new(EACH);
    let stream = server.open(None);
    for service in ["unknown", "other"] {
        assert_eq!(server.report(0, stream, "gold", service, 1), 0);
    }
    let bucket = BucketId::from([("path".into(), "/".into())]);
    let mut report = |now, denied| {
        let used =
            BucketUsage { denied, elapsed: Duration::from_secs(5), ..BucketUsage::default() };
        let reported = [(bucket.clone(), used)];
        let ignored = server.quotas.report(now, stream, "gold", reported, &mut server.pool);
        server.quotas.tick(now, &mut server.pool);
        let orders = server.quotas.orders().flat_map(|(_, orders)| orders);
        let forgotten = orders.filter(|order| order.bucket.contains_key("path"));
        (ignored, forgotten.filter(|order| order.assignment.is_none()).count())
    };
    assert_eq!(report(5 * SECOND, 1), (Ok(1), 0));
    assert_eq!(report(10 * SECOND, 0), (Ok(1), 1));
    for _ in 0..MOST_SPARED {
        assert_eq!(report(10 * SECOND, 1), (Ok(1), 0));
    }
    assert_eq!(report(10 * SECOND, 1), (Ok(1), 1));
    // From the next second on, it is one of few again.
    assert_eq!(report(11 * SECOND, 1), (Ok(1), 1));
    assert_eq!(report(11 * SECOND, 1), (Ok(1), 0));
}

#[test]
fn a_bucket_that_a_message_names_often_is_answered_once() {
    let mut server = Server::new(ONE);
    let stream = server.open(None);
    let used = BucketUsage { allowed: 1, denied: 0, elapsed: Duration::from_secs(5) };
    let often = (0..10_000).map(|_| (id("db"), used));
    let ignored = server.quotas.report(0, stream, "gold", often, &mut server.pool);
    assert_eq!(ignored, Ok(0));
    assert_eq!(server.told().len(), 1);
}

/// A tenant that chooses a long name would have no assignment, and pass where Envoy lets such buckets pass.
#[test]
fn a_bucket_with_a_long_value_has_an_assignment_like_others() {
    let mut server = Server::new(EACH);
    let stream = server.open(None);
    for service in ["short".to_owned(), "x".repeat(2_000), "%".repeat(2_000)] {
        assert_eq!(server.report(0, stream, "gold", &service, 500), 0);
        let told = server.told();
        assert!(matches!(told[..], [(_, Some(rate))] if rate >= 100.0), "{told:?}");
    }
}

#[test]
fn two_envoys_of_one_name_are_two_clients() {
    let mut server = Server::new(ONE);
    let (one, other) = (server.open(Some("same")), server.open(Some("same")));
    let told = server.run(30 * SECOND, &[(one, "basic", 5_000), (other, "basic", 5_000)]);
    assert_eq!(told, [Some(500.0), Some(500.0)]);
    server.quotas.close(one);
    server.quotas.close(other);
    assert_eq!(server.quotas.buckets(), 2);
    // Each of the lost parts goes to one new stream.
    for _ in 0..3 {
        let stream = server.open(Some("same"));
        server.report(31 * SECOND, stream, "basic", "db", 5_000);
    }
    let told: f64 = server.told().into_iter().filter_map(|(_, rate)| rate).sum();
    assert!(told <= 1_000.0, "{told}");
}

#[test]
fn a_bucket_that_is_not_used_is_forgotten() {
    let mut server = Server::new(ONE);
    let stream = server.open(None);
    let told = server.run(130 * SECOND, &[(stream, "basic", 0)]);
    assert_eq!(told, [None]);
    let told = server.run(20 * SECOND, &[]);
    assert_eq!((told.len(), server.quotas.buckets()), (0, 0));
}

#[test]
fn a_capacity_that_is_changed_is_divided_anew_and_one_that_is_gone_ends() {
    let mut server = Server::new(ONE);
    let stream = server.open(None);
    assert_eq!(server.run(10 * SECOND, &[(stream, "basic", 5_000)]), [Some(1_000.0)]);
    server.reload(&ONE.replace("1000/second", "400/second"));
    server.report(15 * SECOND, stream, "basic", "db", 25_000);
    assert_eq!(server.told().last(), Some(&(stream, Some(400.0))));
    server.reload("capacity = []");
    assert_eq!(server.told(), [(stream, None)]);
}

#[test]
fn a_bucket_draws_on_the_capacity_that_a_reload_gives_it() {
    let mut server = Server::new(ONE);
    let stream = server.open(None);
    assert_eq!(server.run(10 * SECOND, &[(stream, "basic", 5_000)]), [Some(1_000.0)]);
    server.reload(&ONE.replace("name = \"db\"", "name = \"main\""));
    assert_eq!(server.told(), [(stream, None)]);
    assert_eq!(server.run(15 * SECOND, &[(stream, "basic", 5_000)]), [Some(1_000.0)]);
    // What it had of the old one ends by itself.
    server.run(10 * SECOND, &[(stream, "basic", 5_000)]);
    assert_eq!(server.quotas.buckets(), 1);
}

#[test]
fn an_envoy_that_comes_back_has_the_terms_of_the_file_in_force() {
    let mut server = Server::new(ONE);
    let (gold, basic) = (server.open(Some("gold")), server.open(None));
    let told = server.run(30 * SECOND, &[(gold, "gold", 5_000), (basic, "basic", 5_000)]);
    assert_eq!(told, [Some(750.0), Some(250.0)]);
    server.quotas.close(gold);
    server.reload(&ONE.replace("weight = 3", "weight = 1"));
    let gold = server.open(Some("gold"));
    let told = server.run(30 * SECOND, &[(gold, "gold", 5_000), (basic, "basic", 5_000)]);
    assert_eq!(told, [Some(500.0), Some(500.0)]);
    assert_eq!(server.quotas.buckets(), 2);
}

/// A file makes leases shorter. One of two Envoys loses its stream later, and what it is told from `lost_from` on is lost.
/// Returns what it was told last, and since when the other one has everything.
fn share_shorter_leases(lost_from: u64, closes: u64) -> (u64, u64) {
    let text = |lease| ONE.replace("limit", &format!("lease = \"{lease} seconds\"\nlimit"));
    let mut server = Server::new(&text(60));
    let streams = [server.open(None), server.open(None)];
    // The rate of each, and until when.
    let mut in_force = [(0.0, 0); 2];
    let (mut last, mut has_all) = (0, 0);
    for now in (0..90 * SECOND).step_by(100) {
        if now == 7 * SECOND {
            server.reload(&text(10));
        }
        if now == closes {
            server.quotas.close(streams[0]);
        }
        for stream in streams.into_iter().filter(|_| now.is_multiple_of(5 * SECOND)) {
            server.report(now, stream, "basic", "db", 25_000);
        }
        server.pool.tick(now);
        server.quotas.tick(now, &mut server.pool);
        for (stream, orders) in server.quotas.orders() {
            let at = usize::from(stream == streams[1]);
            for order in orders {
                let rate = rate(&order).expect("a rate");
                let (_, seconds) = order.assignment.expect("an assignment");
                if at == 0 {
                    last = seconds;
                }
                if at == 1 || now < lost_from {
                    in_force[at] = (rate, now + seconds * SECOND);
                }
                if has_all == 0 && at == 1 && rate > 900.0 {
                    has_all = now;
                }
            }
        }
        let sum: f64 =
            in_force.iter().filter(|(_, until)| now < *until).map(|(rate, _)| rate).sum();
        assert!(sum <= 1_000.0, "{now}: {in_force:?}");
    }
    (last, has_all)
}

#[test]
fn a_lease_that_a_reload_makes_shorter_is_short_at_once_and_not_handed_out_twice() {
    let (time_to_live, has_all) = share_shorter_leases(u64::MAX, 22 * SECOND);
    assert_eq!(time_to_live, 8);
    assert!((30 * SECOND..=31 * SECOND).contains(&has_all), "{has_all}");
    // Nobody knows whether the shorter one has arrived.
    let (time_to_live, has_all) = share_shorter_leases(7 * SECOND, 11 * SECOND);
    assert_eq!(time_to_live, 8);
    assert!((65 * SECOND..=67 * SECOND).contains(&has_all), "{has_all}");
}
