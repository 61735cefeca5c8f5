//! The other answers to a request above its limit: responses of your own, redirects, degraded service, trial mode.

use super::common::{CLIENT, keyless};
use super::common::{app, get, header, secs, send, store};
use http::{Request, Response};
use sluicegate::adapter::{Charge, Refusal};
use sluicegate::key::{KeyBuf, Missing, View};
use sluicegate::limit::{Limits, WhenFull};
use sluicegate::response::LazyDecision;
use sluicegate::rule::{KnownLimits, Rule};
use sluicegate::store::OnStoreError;
use sluicegate::{Fields, Limit, Memory, RateLimitLayer, Rejection};
use sluicegate_tests::stores::{Manner, TestStore};
use tower::ServiceExt;

#[tokio::test]
async fn the_operator_can_replace_the_whole_response() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(1).by(CLIENT)).store(store).respond_with(
        |refusal: &Refusal, request: &Request<String>| {
            let body = format!("{} at {}", refusal.status(), request.uri().path());
            Response::builder().status(420).header("retry-after", "99").body(body).unwrap()
        },
    );
    let app = app(layer);
    send(&app, "/tea", "alice").await;
    let refused = send(&app, "/tea", "alice").await;
    assert_eq!(refused.status(), 420);
    assert_eq!(refused.body(), "429 at /tea");
    assert_eq!(header(&refused, "retry-after"), "99", "what the operator said was overwritten");
}

/// A request that has no key.
#[tokio::test]
async fn a_response_of_ones_own_for_too_many_leaves_other_refusals_alone() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(1).by(CLIENT))
        .store(store)
        .respond_to_too_many(|refusal: &Refusal, _: &Request<String>| {
            Response::builder().status(420).body(format!("was {}", refusal.status())).unwrap()
        });
    let app = app(layer);
    send(&app, "/", "alice").await;
    let refused = send(&app, "/", "alice").await;
    assert_eq!((refused.status().as_u16(), refused.body().as_str()), (420, "was 429"));
    assert_eq!(header(&refused, "retry-after"), "60");
    assert_ne!(header(&refused, "ratelimit"), "");
    let missing = app.oneshot(keyless()).await.unwrap();
    assert_eq!(missing.status(), 400);
    assert_eq!(header(&missing, "content-type"), "application/problem+json");
}

#[tokio::test]
async fn what_is_on_trial_refuses_nobody_while_the_store_is_away() {
    let (limit, other) = (Limit::per_hour(1), Limit::per_day(9));
    for (rejection, limits, status) in [
        (Rejection::shadow(), [limit, other], 200),
        (Rejection::queue(secs(1)).then(Rejection::shadow()), [limit, other], 200),
        (Rejection::block(), [limit.shadow(), other.shadow()], 200),
        (Rejection::block(), [limit.shadow(), other], 503),
    ] {
        for manner in [Manner::Fails, Manner::FailsLater] {
            let layer = RateLimitLayer::new(Limits::from(limits).by(CLIENT))
                .store(TestStore::new(store().0, manner))
                .on_store_error(OnStoreError::Refuse)
                .rejection(rejection.clone());
            let app = app(layer.clone());
            assert_eq!(send(&app, "/", "alice").await.status(), status, "{rejection:?}");
            assert_eq!(layer.counts().store_failures, 1);
        }
    }
}

#[tokio::test]
async fn a_layer_on_trial_refuses_nobody_while_its_store_is_full() {
    let limit = Limit::per_day(1).when_full(WhenFull::Refuse);
    let store = Memory::with_capacity(1);
    (0..1_000_u64).for_each(|number| drop(store.spend(&limit, &KeyBuf::of(number), 1)));
    for (rejection, status) in [(Rejection::block(), 503), (Rejection::shadow(), 200)] {
        let layer = RateLimitLayer::new(limit.by(CLIENT)).store(store.clone()).rejection(rejection);
        assert_eq!(send(&app(layer), "/", "alice").await.status(), status);
    }
}

#[tokio::test]
async fn what_is_served_above_the_limit_is_counted_and_handed_on() {
    for (rejection, degraded) in [(Rejection::degrade(), 1), (Rejection::shadow(), 0)] {
        let (store, _clock) = store();
        let layer = RateLimitLayer::new(Limit::per_minute(1).by(CLIENT)).store(store);
        let layer = layer.rejection(rejection);
        let app = app(layer.clone());
        send(&app, "/", "alice").await;
        let served = send(&app, "/", "alice").await;
        if degraded > 0 {
            assert!(!served.extensions().get::<LazyDecision>().unwrap().decision().is_admitted());
        }
        let counts = layer.counts();
        assert_eq!((counts.degraded, counts.shadowed, counts.refused), (degraded, 1 - degraded, 0));
    }
}

#[tokio::test]
async fn a_limit_on_trial_refuses_nothing_and_is_reported_beside_one_that_does() {
    let (store, _clock) = store();
    let limits = [Limit::per_minute(1).named("trial").shadow(), Limit::per_minute(3).named("real")];
    let layer = RateLimitLayer::new(Limits::from(limits).by(CLIENT)).store(store);
    let counts = layer.clone();
    let app = app(layer);
    for status in [200, 200, 200, 429, 429] {
        let served = send(&app, "/", "alice").await;
        assert_eq!(served.status().as_u16(), status);
        assert_eq!(served.headers()["ratelimit-policy"], "\"real\";q=3;w=60");
        assert!(!served.headers()["ratelimit"].to_str().unwrap().contains("trial"));
    }
    assert_eq!((counts.counts().shadowed, counts.counts().refused), (2, 2));
}

#[tokio::test]
async fn of_a_limit_on_trial_alone_clients_are_told_nothing() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(1).shadow().by(CLIENT)).store(store);
    let counts = layer.clone();
    let app = app(layer);
    for _ in 0..5 {
        let served = send(&app, "/", "alice").await;
        assert_eq!(served.status().as_u16(), 200);
        assert!(!served.headers().contains_key("ratelimit-policy"));
        assert!(!served.headers().contains_key("ratelimit"));
    }
    assert_eq!(counts.counts().shadowed, 4);
}

#[tokio::test]
async fn a_closure_can_choose_what_happens() {
    let (store, _clock) = store();
    let layer = RateLimitLayer::new(Limit::per_minute(1).ban(secs(600)).by(CLIENT))
        .store(store)
        .rejection(Rejection::from_fn(|decision| match decision.is_banned() {
            true => Rejection::block(),
            false => Rejection::degrade(),
        }));
    let app = app(layer);
    send(&app, "/", "alice").await;
    let banned = send(&app, "/", "alice").await;
    assert_eq!(banned.status(), 429);
    assert_eq!(header(&banned, "retry-after"), "660");
    assert!(banned.body().contains("abnormal-usage-detected"), "{}", banned.body());
}

/// Under a shadow nothing waits: a request that leaves keeps its charge all the same.
#[tokio::test]
async fn a_shadowed_queue_counts_those_who_leave() {
    let (store, _clock) = store();
    let limit = Limit::leaky_bucket(1, secs(3_600)).queue(5);
    let layer = RateLimitLayer::new(limit.by(CLIENT)).store(store).rejection(Rejection::shadow());
    let counts = layer.clone();
    let handler = tower::service_fn(|_: Request<String>| {
        std::future::pending::<Result<Response<String>, std::convert::Infallible>>()
    });
    let app = tower::ServiceBuilder::new().layer(layer).service(handler);
    for _ in 0..20 {
        let mut gone = tokio_test::task::spawn(app.clone().oneshot(get("/", "alice")));
        assert!(gone.poll().is_pending());
    }
    assert_eq!(counts.counts().shadowed, 14);
}

#[tokio::test]
async fn the_older_fields_speak_of_the_innermost_layer() {
    let (store, _clock) = store();
    let fields = Fields::X_RATE_LIMIT;
    let wide = RateLimitLayer::new(Limit::per_minute(1_000).by(CLIENT)).store(store.clone());
    let strict = RateLimitLayer::new(Limit::per_minute(2).by(CLIENT)).store(store);
    let layers =
        tower::ServiceBuilder::new().layer(wide.fields(fields)).layer(strict.fields(fields));
    let served = send(&app(layers.into_inner()), "/", "alice").await;
    assert_eq!(header(&served, "x-ratelimit-limit"), "2");
    assert_eq!(header(&served, "x-ratelimit-remaining"), "1");
    assert_eq!(served.headers().get_all("x-ratelimit-limit").iter().count(), 1);
}

/// A rule that charges the limit with the number in the path.
#[derive(Clone)]
struct Numbered(Vec<Limit>);

impl KnownLimits for Numbered {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.0.iter().for_each(each);
    }
}

impl<V: View> Rule<V> for Numbered {
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        let at: usize = view.path().trim_start_matches("/limits/").parse().expect("a number");
        *charge = Charge::of(self.0[at], KeyBuf::new(), 1);
        Ok(())
    }
}

/// Where a rule knows more limits than a charge is compared with, the rest is told to clients as the first are.
#[tokio::test]
async fn the_last_of_many_limits_is_announced_as_the_first() {
    let limits = (0..200).map(|number| Limit::per_minute(2).named(&format!("limit-{number:03}")));
    let (store, _clock) = store();
    let app = app(RateLimitLayer::new(Numbered(limits.collect())).store(store));
    let mut answers = Vec::new();
    for at in ["000", "199"] {
        for status in [200, 200, 429] {
            let answer = send(&app, &format!("/limits/{at}"), "alice").await;
            assert_eq!(answer.status().as_u16(), status);
            answers.push(format!("{:?} {}", answer.headers(), answer.body()).replace(at, "…"));
        }
    }
    assert!(answers[0].contains("limit-…"), "{}", answers[0]);
    assert_eq!(answers[..3], answers[3..]);
}
