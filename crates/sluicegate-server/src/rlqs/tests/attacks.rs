//! What Envoys, files and clients of leases may do beyond the ordinary.

use std::sync::Arc;
use std::time::Duration;

use crate::capacity::{BucketId, Capacities};
use crate::rlqs::assignment::Assignment;
use crate::rlqs::quotas::{MAX_BUCKETS, MAX_STREAMS, Order, Quotas, ReportError, StreamId};
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
    let change = |server: &mut Server, text: &str| {
        let capacities = capacities(text);
        server.pool.set_templates(capacities.templates().clone());
        server.quotas.set_capacities(capacities);
    };
    change(&mut server, &ONE.replace("1000/second", "400/second"));
    server.report(15 * SECOND, stream, "basic", "db", 25_000);
    assert_eq!(server.told().last(), Some(&(stream, Some(400.0))));
    change(&mut server, "capacity = []");
    assert_eq!(server.told(), [(stream, None)]);
}
