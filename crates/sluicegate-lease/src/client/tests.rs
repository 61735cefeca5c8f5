use std::time::Duration;

use super::{Action, OnLoss, Session};
use crate::amount::Amount;
use crate::fair::Demand;
use crate::message::{Request, Response};
use crate::pool::{Answer, AskError, Grant};

fn session(on_loss: OnLoss) -> Session {
    let mut session = Session::new("one", 0, 1);
    session.add("db", Amount::units(10), on_loss);
    session
}

#[track_caller]
fn asks(session: &mut Session, now: u64) -> Request {
    match session.poll(now) {
        Action::Ask(request) => request,
        Action::Wait(until) => panic!("it waits until {until}"),
    }
}

#[track_caller]
fn waits(session: &mut Session, now: u64) -> u64 {
    match session.poll(now) {
        Action::Wait(until) => until - now,
        Action::Ask(request) => panic!("it asks {request:?}"),
    }
}

fn grant(units: u64) -> Result<Answer, AskError> {
    Ok(Answer::Grant(Grant {
        capacity: Amount::units(units),
        ttl: Duration::from_secs(60),
        refresh: Duration::from_secs(5),
        safe: Amount::units(3),
    }))
}

fn answer(request: &Request, fence: u64, answer: Result<Answer, AskError>) -> Response {
    Response { sequence: request.sequence, fence, answers: vec![answer] }
}

fn capacity(session: &Session, now: u64) -> f64 {
    session.capacity(now, "db").as_f64()
}

#[test]
fn a_lease_counts_from_before_the_client_asked() {
    let mut session = session(OnLoss::Stop);
    let request = asks(&mut session, 0);
    session.answered(4_000, &answer(&request, 1, grant(10)));
    assert_eq!(capacity(&session, 59_999), 10.0);
    assert_eq!(capacity(&session, 60_000), 0.0);
}

#[test]
fn a_lost_lease_stops_keeps_or_falls_back_on_the_safe_capacity() {
    for (on_loss, expected) in [(OnLoss::Stop, 0.0), (OnLoss::Keep, 10.0), (OnLoss::Safe, 3.0)] {
        let mut session = session(on_loss);
        let request = asks(&mut session, 0);
        session.answered(0, &answer(&request, 1, grant(10)));
        assert_eq!(capacity(&session, 60_000), expected, "{on_loss:?}");
        // It reports what it uses.
        assert_eq!(asks(&mut session, 60_000).resources[0].has.as_f64(), expected);
    }
}

#[test]
fn only_the_answer_to_the_newest_request_counts() {
    let mut session = session(OnLoss::Stop);
    let first = asks(&mut session, 0);
    assert_eq!(waits(&mut session, 1), 4_999);
    // The first request has failed, and the second is on its way.
    waits(&mut session, 5_000);
    let second = asks(&mut session, 6_000);
    session.answered(6_001, &answer(&first, 1, grant(10)));
    assert_eq!(capacity(&session, 6_001), 0.0);
    session.answered(6_002, &answer(&second, 1, grant(5)));
    session.answered(6_003, &answer(&second, 1, grant(10)));
    assert_eq!(capacity(&session, 6_003), 5.0);
}

#[test]
fn an_older_master_is_not_obeyed() {
    let mut session = session(OnLoss::Stop);
    let request = asks(&mut session, 0);
    session.answered(0, &answer(&request, 2, grant(10)));
    let request = asks(&mut session, 5_000);
    assert_eq!(request.fence, 2);
    session.answered(5_000, &answer(&request, 1, grant(99)));
    assert_eq!(capacity(&session, 5_000), 10.0);
}

#[test]
fn a_new_master_is_asked_again_at_once() {
    let mut session = session(OnLoss::Stop);
    let request = asks(&mut session, 0);
    session.answered(0, &answer(&request, 2, Ok(Answer::AskAgain)));
    assert_eq!(asks(&mut session, 0).fence, 2);
    // One that says so for ever is not asked for ever.
    for _ in 0..3 {
        let sequence = session.sequence;
        session.answered(0, &Response { sequence, fence: 2, answers: vec![Ok(Answer::AskAgain)] });
        if let Action::Wait(until) = session.poll(0) {
            assert!(until >= 900);
            return;
        }
    }
    panic!("it asks for ever");
}

#[test]
fn a_client_renews_before_its_refresh_interval_has_passed_with_jitter() {
    let mut waits_of = Vec::new();
    for seed in 0..20 {
        let mut session = Session::new("one", 0, seed);
        session.add("db", Amount::units(10), OnLoss::Stop);
        let request = asks(&mut session, 0);
        session.answered(0, &answer(&request, 1, grant(10)));
        waits_of.push(waits(&mut session, 0));
    }
    assert!(waits_of.iter().all(|wait| (4_500..=5_000).contains(wait)), "{waits_of:?}");
    waits_of.sort_unstable();
    waits_of.dedup();
    assert!(waits_of.len() > 10);
}

#[test]
fn a_client_backs_off_by_a_factor_up_to_a_minute() {
    let mut session = session(OnLoss::Stop);
    let mut now = 0;
    for failures in 0..40 {
        asks(&mut session, now);
        session.failed(now);
        let wait = waits(&mut session, now);
        let longest = (1_000.0 * 1.3_f64.powi(failures)).min(60_000.0);
        assert!((longest * 0.9 - 2.0..=longest).contains(&(wait as f64)), "{failures}: {wait}");
        now += wait;
    }
    // After an answer, the next failure begins anew.
    let request = asks(&mut session, now);
    session.answered(now, &answer(&request, 1, grant(10)));
    now += 5_000;
    asks(&mut session, now);
    session.failed(now);
    assert!(waits(&mut session, now) <= 1_000);
}

#[test]
fn another_master_is_asked_at_once_but_not_for_ever() {
    let mut session = session(OnLoss::Stop);
    for _ in 0..3 {
        asks(&mut session, 0);
        session.redirected(0);
    }
    asks(&mut session, 0);
    session.redirected(0);
    assert!(waits(&mut session, 0) >= 900);
}

#[test]
fn a_client_in_a_hurry_asks_at_once_unless_its_server_is_in_trouble() {
    let mut session = session(OnLoss::Stop);
    let request = asks(&mut session, 0);
    assert!(!session.hurry(0), "a request is on its way");
    session.answered(0, &answer(&request, 1, grant(10)));
    assert!(waits(&mut session, 1) > 4_000);
    assert!(session.hurry(1));
    asks(&mut session, 1);
    session.failed(1);
    assert!(!session.hurry(2), "its server failed");
    assert!(waits(&mut session, 2) > 800);
    session.close();
    assert!(!session.hurry(60_000));
}

#[test]
fn several_resources_go_in_one_request() {
    let mut session = session(OnLoss::Stop);
    session.add("cache", Amount::units(20), OnLoss::Stop);
    let request = asks(&mut session, 0);
    let names: Vec<&str> = request.resources.iter().map(|resource| &*resource.resource).collect();
    assert_eq!(names, ["db", "cache"]);
    let answers = vec![grant(1), grant(2)];
    session.answered(0, &Response { sequence: request.sequence, fence: 1, answers });
    assert_eq!(session.capacity(0, "cache"), Amount::units(2));
    // A third one is asked for at once.
    session.add("disk", Amount::units(1), OnLoss::Stop);
    assert_eq!(asks(&mut session, 1).resources.len(), 3);
}

#[test]
fn an_error_is_a_failure_but_what_was_granted_counts() {
    let mut session = session(OnLoss::Stop);
    session.add("cache", Amount::units(20), OnLoss::Stop);
    let request = asks(&mut session, 0);
    let answers = vec![grant(1), Err(AskError::ManyResources)];
    session.answered(0, &Response { sequence: request.sequence, fence: 1, answers });
    assert_eq!(capacity(&session, 0), 1.0);
    assert!((900..=1_000).contains(&waits(&mut session, 0)));
}

#[test]
fn a_client_releases_once_and_is_silent_after_that() {
    let mut session = session(OnLoss::Keep);
    let request = asks(&mut session, 0);
    let release = session.close().unwrap();
    assert!(release.sequence > request.sequence);
    assert_eq!(session.close(), None);
    session.answered(0, &answer(&request, 1, grant(10)));
    assert_eq!((capacity(&session, 0), session.poll(0)), (0.0, Action::Wait(u64::MAX)));
}

#[test]
fn a_grant_that_no_template_allows_is_cut() {
    let mut session = session(OnLoss::Stop);
    let request = asks(&mut session, 0);
    let year = Duration::from_secs(365 * 24 * 60 * 60);
    let endless = Grant { capacity: Amount::MAX, ttl: year, refresh: year, safe: Amount::MAX };
    session.answered(0, &answer(&request, 1, Ok(Answer::Grant(endless))));
    let day = 24 * 60 * 60 * 1_000;
    assert!(waits(&mut session, 0) <= day / 2);
    assert_eq!(capacity(&session, day), 0.0);
}

#[test]
fn no_answer_makes_a_client_ask_without_a_pause() {
    let nothing = Duration::ZERO;
    let one = Amount::units(1);
    let grant = |ttl| Answer::Grant(Grant { capacity: one, ttl, refresh: nothing, safe: one });
    let short = Duration::from_millis(1);
    for hasty in [grant(nothing), grant(short), Answer::Keep(nothing)] {
        let mut session = session(OnLoss::Stop);
        let request = asks(&mut session, 0);
        session.answered(0, &answer(&request, 1, Ok(hasty)));
        assert!(waits(&mut session, 0) >= 9);
    }
}

#[test]
fn a_client_that_was_told_to_keep_for_ever_asks_within_a_minute() {
    let mut session = session(OnLoss::Stop);
    let request = asks(&mut session, 0);
    session.answered(0, &answer(&request, 1, Ok(Answer::Keep(Duration::MAX))));
    assert!(waits(&mut session, 0) <= 60_000);
}

#[test]
fn a_fence_that_was_much_too_high_is_forgotten_with_the_lease() {
    let mut session = session(OnLoss::Stop);
    let request = asks(&mut session, 0);
    session.answered(0, &answer(&request, u64::MAX, grant(10)));
    let request = asks(&mut session, 5_000);
    session.answered(5_000, &answer(&request, 2, grant(20)));
    assert_eq!(capacity(&session, 5_000), 10.0, "the lease is still that of the other master");
    let request = asks(&mut session, 60_000);
    session.answered(60_000, &answer(&request, 2, grant(20)));
    let request = asks(&mut session, 70_000);
    assert_eq!(request.fence, 0);
    session.answered(70_000, &answer(&request, 2, grant(20)));
    assert_eq!(capacity(&session, 70_000), 20.0);
}

fn of_two() -> Session {
    let mut session = session(OnLoss::Stop);
    session.add("cache", Amount::units(1), OnLoss::Stop);
    session
}

#[test]
fn a_resource_that_is_refused_for_good_does_not_cost_a_client_its_other_leases() {
    let mut session = of_two();
    for now in 0..600_000 {
        let Action::Ask(request) = session.poll(now) else { continue };
        let answers = vec![grant(10), Err(AskError::ManyResources)];
        session.answered(now, &Response { sequence: request.sequence, fence: 1, answers });
        assert_eq!(capacity(&session, now), 10.0);
        let Action::Wait(next) = session.poll(now) else { panic!("it asks without a pause") };
        assert!(next - now <= 5_000, "it is asked to refresh after 5 s, and waits {}", next - now);
    }
}

#[test]
fn a_client_of_many_resources_asks_a_new_master_again_at_once() {
    let mut session = session(OnLoss::Stop);
    for number in 0..10 {
        session.add(&number.to_string(), Amount::units(1), OnLoss::Stop);
    }
    let request = asks(&mut session, 0);
    let answers = vec![Ok(Answer::AskAgain); 11];
    session.answered(1, &Response { sequence: request.sequence, fence: 2, answers });
    asks(&mut session, 1);
}

#[test]
fn a_server_that_leaves_out_answers_is_not_asked_without_a_pause() {
    let mut session = of_two();
    let request = asks(&mut session, 0);
    session.answered(0, &answer(&request, 1, grant(10)));
    assert!(waits(&mut session, 0) >= 900);
    assert_eq!(capacity(&session, 0), 0.0, "nobody knows for which resource it was");
}

#[test]
fn after_servers_sent_a_client_in_circles_it_follows_them_to_the_master_at_once() {
    let mut session = session(OnLoss::Stop);
    let mut now = 0;
    for _ in 0..20 {
        while let Action::Wait(until) = session.poll(now) {
            now = until;
        }
        session.redirected(now);
    }
    // It waits, and then they agree.
    now += waits(&mut session, now);
    asks(&mut session, now);
    session.redirected(now);
    asks(&mut session, now);
}

/// A client of these resources, in a round of requests.
fn crowd(count: usize, demands: usize) -> Session {
    let mut session = Session::new("one", 0, 1);
    for number in 0..count {
        session.set_demands(&number.to_string(), vec![Demand::of(Amount::units(1)); demands]);
    }
    session
}

fn asked(session: &mut Session, now: u64) -> Vec<Box<str>> {
    let request = asks(session, now);
    let answers = vec![grant(1); request.resources.len()];
    session.answered(now, &Response { sequence: request.sequence, fence: 1, answers });
    request.resources.into_iter().map(|resource| resource.resource).collect()
}

#[test]
fn many_resources_are_asked_for_in_turns() {
    let mut session = crowd(2_500, 1);
    let mut all = asked(&mut session, 0);
    assert_eq!(all.len(), 1_000);
    // Others come and go between two requests, and nobody misses a turn.
    session.remove(&all[7].clone());
    session.set_demands("new", vec![Demand::of(Amount::units(1))]);
    for length in [1_000, 501] {
        let part = asked(&mut session, 0);
        assert_eq!(part.len(), length);
        all.extend(part);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 2_501);
    assert!((4_500..=5_000).contains(&waits(&mut session, 0)));
    // Demands are bounded too.
    assert_eq!(asked(&mut crowd(100, 64), 0).len(), 62);
}

#[test]
fn a_part_that_fails_does_not_keep_others_from_their_turn() {
    let mut session = crowd(1_500, 1);
    let mut now = 0;
    for _ in 0..20 {
        let first = asked(&mut session, now);
        assert_eq!(first.len(), 1_000);
        let second = asks(&mut session, now);
        assert_eq!(second.resources.len(), 500);
        session.failed(now);
        let wait = waits(&mut session, now);
        assert!(wait <= 1_000, "{wait}");
        now += wait;
    }
}

#[test]
fn a_part_that_fails_has_its_turn_again_soon_whatever_becomes_of_the_others() {
    let mut session = crowd(1_500, 1);
    asks(&mut session, 0);
    session.failed(0);
    let now = waits(&mut session, 0);
    assert_eq!(asked(&mut session, now).len(), 500);
    let wait = waits(&mut session, now);
    assert!(wait <= 1_500, "{wait}");
    assert_eq!(asked(&mut session, now + wait).len(), 1_000);
}
