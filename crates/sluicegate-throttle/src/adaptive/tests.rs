use std::collections::VecDeque;

use super::*;

const MS: u64 = 1_000;

fn served(now: u64, time: u64, in_flight: usize) -> Sample {
    Sample { now, time, answered: Some(time), in_flight, is_overload: false }
}

fn left(now: u64, time: u64, in_flight: usize) -> Sample {
    Sample { answered: None, ..served(now, time, in_flight) }
}

#[test]
fn no_limit_grows_while_less_than_half_of_it_is_in_use() {
    let mut bandwidth = Bandwidth::default();
    for _ in 0..100 {
        bandwidth.update(served(0, 10 * MS, 4));
        assert_eq!(bandwidth.limit(), 20);
    }
}

#[test]
fn overload_lowers_the_default_limit() {
    let mut bandwidth = Bandwidth::new(100, 2, 1_000);
    for now in 0..4_000 {
        let sample = Sample { is_overload: true, ..served(now * MS, 1, 10) };
        bandwidth.update(sample);
    }
    assert!(bandwidth.limit() < 60, "{}", bandwidth.limit());
}

/// The server does 200 requests at once in 10 ms each, and more take as much longer.
#[test]
fn a_few_overloads_do_not_lower_the_limit_and_many_do() {
    let limit_after = |samples: u64, one_in: u64| {
        let mut bandwidth = Bandwidth::new(200, 2, 1_000);
        let mut now = 0;
        for number in 0..samples {
            let limit = bandwidth.limit();
            let time = 10 * MS * limit.max(200) as u64 / 200;
            now += time / limit as u64;
            let is_overload = number % one_in == 0;
            bandwidth.update(Sample { is_overload, ..served(now, time, limit) });
        }
        bandwidth.limit()
    };
    for one_in in [1_000, 100, 10] {
        let limit = limit_after(200_000, one_in);
        assert!((150..300).contains(&limit), "{limit} with one in {one_in}");
    }
    for one_in in [1, 2, 4] {
        let limit = limit_after(20_000, one_in);
        assert!(limit < 100, "{limit} with one in {one_in}");
    }
}

/// A server that works on the oldest requests. The others wait inside it.
struct Busy {
    slots: usize,
    /// The mean work of a request, and for how long its client waits, in microseconds.
    work: u64,
    patience: u64,
    now: u64,
    started: u64,
    /// When each request began, how many ran then, and what is left to do.
    running: VecDeque<(u64, usize, u64)>,
}

/// The time between two looks at the server.
const STEP: u64 = MS / 10;

impl Busy {
    fn new(slots: usize, work: u64, patience: u64) -> Self {
        Self { slots, work, patience, now: 0, started: 0, running: VecDeque::new() }
    }

    /// Lets `seconds` pass in which clients always wait for a place. Returns how many requests were answered in the last second.
    fn pass(&mut self, bandwidth: &mut Bandwidth, seconds: u64) -> u64 {
        let mut answered = 0;
        let until = self.now + seconds * 1_000 * MS;
        while self.now < until {
            self.now += STEP;
            self.running.iter_mut().take(self.slots).for_each(|(.., left)| *left -= STEP);
            let now = self.now;
            for at in (0..self.slots.min(self.running.len())).rev() {
                if self.running[at].2 == 0 {
                    let (since, in_flight, _) = self.running.remove(at).unwrap();
                    answered += u64::from(until - now < 1_000 * MS);
                    bandwidth.update(served(now, now - since, in_flight));
                    self.start(bandwidth.limit());
                }
            }
            let patience = self.patience;
            while self.running.front().is_some_and(|(since, ..)| now - since >= patience) {
                let (since, in_flight, _) = self.running.pop_front().unwrap();
                bandwidth.update_unmeasured(left(now, now - since, in_flight));
                self.start(bandwidth.limit());
            }
            self.start(bandwidth.limit());
        }
        answered
    }

    fn start(&mut self, limit: usize) {
        while self.running.len() < limit {
            // From half the mean to one and a half, so that requests do not end together.
            self.started += 1;
            let work = self.work * (50 + self.started * 37 % 101) / 100 / STEP * STEP;
            self.running.push_back((self.now, self.running.len() + 1, work));
        }
    }
}

#[test]
fn a_limit_at_which_all_clients_leave_is_lowered_until_they_are_answered() {
    for (slots, work, start) in [(1, 50, 20), (1, 50, 5_000), (2, 20, 1_000), (8, 20, 2_000)] {
        let capacity = slots as u64 * 1_000 / work;
        let mut bandwidth = Bandwidth::new(start, 2, 10_000);
        let mut server = Busy::new(slots, work * MS, 500 * MS);
        let answered = server.pass(&mut bandwidth, 89);
        assert!(answered * 10 >= capacity * 9, "{answered} of {capacity}, from {start}");
    }
}

#[test]
fn a_server_that_becomes_slow_and_quick_again_is_used_as_before() {
    let mut bandwidth = Bandwidth::default();
    let mut server = Busy::new(8, 20 * MS, 500 * MS);
    let answered = server.pass(&mut bandwidth, 60);
    assert!(answered >= 370, "{answered}");
    // No limit helps: each request takes longer than its client waits.
    server.work = 1_200 * MS;
    assert_eq!(server.pass(&mut bandwidth, 60), 0);
    assert_eq!(bandwidth.learnt(), 2);
    server.work = 20 * MS;
    let answered = server.pass(&mut bandwidth, 20);
    assert!(answered >= 370, "{answered}");
}

#[test]
fn clients_that_leave_for_other_reasons_do_not_lower_the_limit() {
    let mut bandwidth = Bandwidth::default();
    let mut server = Busy::new(8, 20 * MS, 500 * MS);
    server.pass(&mut bandwidth, 60);
    let limit = bandwidth.learnt();
    for _ in 0..10_000 {
        // Sooner than anybody is answered, and where there was room.
        bandwidth.update_unmeasured(left(0, 5 * MS, 10_000));
        bandwidth.update_unmeasured(left(0, 500 * MS, 2));
    }
    assert_eq!(bandwidth.learnt(), limit);
    // Two thirds of them.
    for number in 0..1_000 {
        bandwidth.update_unmeasured(left(0, 500 * MS, 10_000));
        bandwidth.update_unmeasured(left(0, 500 * MS, 10_000));
        bandwidth.update(served(number * 20 * MS, 20 * MS, 1));
    }
    assert_eq!(bandwidth.learnt(), limit);
    // Two thirds leave, and the others are answered, if only in part or with an error.
    let answered = Sample { answered: Some(20 * MS), ..left(0, 500 * MS, 10_000) };
    for _ in 0..10_000 {
        (0..2).for_each(|_| bandwidth.update_unmeasured(left(0, 500 * MS, 10_000)));
        bandwidth.update_unmeasured(answered);
    }
    assert_eq!(bandwidth.learnt(), limit);
}

#[test]
fn clients_that_reset_each_request_at_once_do_not_lower_a_limit_that_has_measured_nothing() {
    let mut bandwidth = Bandwidth::default();
    (0..10_000).for_each(|_| bandwidth.update_unmeasured(left(0, MS, 20)));
    assert_eq!(bandwidth.limit(), 20);
}
