use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::*;

const BATCH: RangeInclusive<u64> = 1..=64;
const START: u64 = 1_000_000_000_000;
/// After this many microseconds all calls have been answered.
const SETTLED: u64 = 10_000;

/// A process with its own clock.
pub(super) struct Process {
    share: Share,
    totals: LeaseCounts,
    ahead: u64,
    /// Parts in 4,000 by which the clock is fast.
    fast: i64,
    under_way: Option<Question>,
}

#[derive(Debug, Clone, Copy)]
struct Question {
    asked: u64,
    wanted: LeaseRequest,
    arrives: u64,
    /// Answers on their way: for which process, and when they arrive.
    answer: Option<(usize, u64)>,
}

impl Process {
    fn clock(&self, now: u64) -> u64 {
        let passed = (now - START) as i64;
        START + self.ahead + (passed + passed * self.fast / 4_000) as u64
    }
}

pub(super) struct Fleet {
    server: Server,
    batch: RangeInclusive<u64>,
    /// Requests, refusals, and requests that waited.
    came: [u64; 3],
    processes: Vec<Process>,
    answers: Vec<Lease>,
    /// What was admitted when, by the server's clock.
    admitted: BTreeMap<u64, u64>,
    /// What each limit admitted when.
    admitted_by: BTreeMap<u64, (Limit, BTreeMap<u64, u64>)>,
    random: fastrand::Rng,
    /// Of when requests come, and to which process. They are the same whatever becomes of them.
    arrivals: fastrand::Rng,
    now: u64,
    /// The longest time to the server or back.
    way: u64,
    /// Whether each request calls the server.
    pub(super) is_plain: bool,
}

impl Fleet {
    fn new(limit: Limit, seed: u64, way: u64) -> Self {
        Self::of(limit, 3, BATCH, seed, way)
    }

    pub(super) fn of(
        limit: Limit,
        processes: usize,
        batch: RangeInclusive<u64>,
        seed: u64,
        way: u64,
    ) -> Self {
        let process = |number: u64| Process {
            share: share(limit, &batch),
            totals: LeaseCounts::default(),
            ahead: number * 3_600_000_000,
            fast: number as i64 % 3 - 1,
            under_way: None,
        };
        Self {
            server: Server::new(limit),
            processes: (0..processes as u64).map(process).collect(),
            batch: batch.clone(),
            came: [0; 3],
            answers: Vec::new(),
            admitted: BTreeMap::new(),
            admitted_by: BTreeMap::new(),
            random: fastrand::Rng::with_seed(seed),
            arrivals: fastrand::Rng::with_seed(!seed),
            now: START,
            way,
            is_plain: false,
        }
    }

    fn run(&mut self, steps: usize, pause: u64) {
        for _ in 0..steps {
            self.now += self.random.u64(0..=pause);
            self.answer();
            let at = self.random.usize(0..self.processes.len());
            self.server.limit = self.processes[at].share.debit.limit;
            match self.random.u8(0..40) {
                0 => self.hand_over(at),
                // A fleet without leases.
                1..3 => {
                    let taken = self.server.limit.take(&mut self.server.state, self.now, 1);
                    self.admit(self.now, u64::from(taken.is_admitted()));
                }
                _ => self.request(at),
            }
        }
    }

    /// Sends requests for `micros`, `together` at once from one process, on average every `mean` microseconds.
    pub(super) fn even(&mut self, parts: &[u64], mean: u64, together: u64, time: u64) {
        let end = self.now + time;
        while self.now < end {
            let chance = self.arrivals.f64().max(f64::MIN_POSITIVE);
            let next = self.now + (-chance.ln() * mean as f64) as u64;
            self.pass(next);
            let mut at = self.arrivals.u64(..parts.iter().sum::<u64>());
            let process = parts.iter().position(|part| {
                let is_it = at < *part;
                at = at.saturating_sub(*part);
                is_it
            });
            for _ in 0..together {
                self.request_of(process.expect("one of them"), 1);
            }
        }
        self.pass(end + SETTLED);
    }

    /// Delivers everything that arrives until then, in order.
    fn pass(&mut self, until: u64) {
        loop {
            let arrives = |process: &Process| {
                let question = process.under_way?;
                Some(question.answer.map_or(question.arrives, |(_, back)| back))
            };
            let next = self.processes.iter().filter_map(arrives).min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            self.answer();
        }
        self.now = self.now.max(until);
    }

    pub(super) fn forget(&mut self) {
        self.came = [0; 3];
        self.processes.iter_mut().for_each(|process| process.totals.leases = 0);
    }

    /// How often the server was asked.
    pub(super) fn questions(&self) -> u64 {
        self.processes.iter().map(|process| process.totals.leases).sum()
    }

    pub(super) fn came(&self) -> [u64; 3] {
        self.came
    }

    fn admit(&mut self, when: u64, cost: u64) {
        *self.admitted.entry(when).or_default() += cost;
        let limit = self.server.limit;
        let key = limit.capacity() ^ limit.count() << 32;
        let (_, by) = self.admitted_by.entry(key).or_insert((limit, BTreeMap::new()));
        *by.entry(when).or_default() += cost;
    }

    fn request(&mut self, at: usize) {
        let cost = if self.random.u8(0..8) == 0 { self.random.u64(1..4) } else { 1 };
        self.request_of(at, cost);
    }

    fn request_of(&mut self, at: usize, cost: u64) {
        self.came[0] += 1;
        if self.is_plain {
            let taken = self.server.limit.take(&mut self.server.state, self.now, cost);
            self.came[1] += u64::from(!taken.is_admitted());
            return;
        }
        let process = &mut self.processes[at];
        let now = process.clock(self.now);
        process.share.expire(super::at(now), &mut process.totals);
        match process.share.step(now, cost, &mut process.totals) {
            Step::Decide(outcome, low) => {
                let is_admitted = outcome.is_admitted();
                if low {
                    self.request_lease(at);
                }
                if is_admitted {
                    self.admit(self.now, cost);
                } else {
                    self.came[1] += 1;
                }
            }
            Step::Wait => {
                self.came[2] += 1;
                process.share.wait(Waiter { cost, answer: oneshot::channel().0 });
                self.request_lease(at);
            }
            Step::PassOn => {
                self.came[2] += 1;
                let taken = self.server.limit.take(&mut self.server.state, self.now, cost);
                let is_admitted = taken.is_admitted();
                self.admit(self.now, if is_admitted { cost } else { 0 });
                self.came[1] += u64::from(!is_admitted);
            }
        }
    }

    fn request_lease(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let asked = process.clock(self.now);
        if let Some(wanted) = process.share.request(asked, &self.batch) {
            let arrives = self.now + self.random.u64(0..=self.way);
            process.under_way = Some(Question { asked, wanted, arrives, answer: None });
        }
    }

    /// Delivers everything that has arrived by now.
    fn answer(&mut self) {
        for at in 0..self.processes.len() {
            let Some(mut question) = self.processes[at].under_way else { continue };
            self.server.limit = self.processes[at].share.debit.limit;
            if question.answer.is_none() && question.arrives <= self.now {
                self.answers.push(self.server.lease(question.wanted, self.now));
                let back = self.now + self.random.u64(0..=self.way);
                question.answer = Some((self.answers.len() - 1, back));
                self.processes[at].under_way = Some(question);
            }
            if let Some((answer, back)) = question.answer {
                if back <= self.now {
                    self.grant(at, question, answer);
                }
            }
        }
    }

    fn grant(&mut self, at: usize, question: Question, answer: usize) {
        let (lease, process) = (self.answers[answer].clone(), &mut self.processes[at]);
        process.under_way = None;
        let (now, totals) = (process.clock(self.now), &mut process.totals);
        process.share.expire(super::at(now), totals);
        let asked = (question.asked, question.wanted);
        let (told, surplus) = process.share.grant(&lease, asked, now, totals);
        if let Some(part) = surplus {
            totals.given_back += part.unspent;
            self.server.give_back(&part, self.now);
        }
        process.share.expire(super::at(now), totals);
        let late = process.share.serve_late(now, totals);
        let is_wanted = process.share.is_wanted();
        // The request that asked is decided when the server decides. Requests that came later are decided when the
        // answer arrives.
        let arrived = self.now;
        for (told, when) in
            told.iter().map(|told| (told, lease.now)).chain(late.iter().map(|told| (told, arrived)))
        {
            if told.outcome.is_admitted() {
                self.admit(when, told.waiter.cost);
            } else {
                self.came[1] += 1;
            }
        }
        if is_wanted {
            self.request_lease(at);
        }
    }

    fn hand_over(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let now = process.clock(self.now);
        process.share.expire(super::at(now), &mut process.totals);
        for part in process.share.hand_over() {
            process.totals.given_back += part.unspent;
            self.server.give_back(&part, self.now);
        }
    }

    fn total(&self) -> u64 {
        self.admitted.values().sum()
    }

    /// Checks every interval.
    pub(super) fn never_exceeds_the_limit(&self) {
        assert_eq!(over(&self.server.limit, &self.admitted), 0, "tokens more than the limit");
    }

    /// Checks every interval, for what each limit has admitted. All of them together may exceed the most generous one by
    /// as much as the other one holds.
    fn never_exceeds_any_limit(&self, [generous, other]: [Limit; 2]) {
        for (limit, admitted) in self.admitted_by.values() {
            assert_eq!(over(limit, admitted), 0, "tokens more than {limit}");
        }
        assert!(over(&generous, &self.admitted) <= other.capacity(), "beside {other}");
    }

    pub(super) fn is_accounted_for(&self) {
        for process in &self.processes {
            let totals = &process.totals;
            let known = totals.spent + totals.given_back + totals.expired + process.share.unspent();
            assert_eq!(totals.leased, known, "{totals:?}");
        }
    }
}

/// How many tokens more than a bucket admits there are in the worst interval.
fn over(limit: &Limit, admitted: &BTreeMap<u64, u64>) -> u64 {
    let Algorithm::TokenBucket { unit, drain, tick, cap, .. } =
        LimitParameters::of(limit).algorithm
    else {
        panic!("a bucket")
    };
    let (mut level, mut last, mut most) = (0_u64, 0, 0);
    for (now, cost) in admitted {
        // The debt of all admissions, in the worst interval until now.
        let drained = (now / tick - last / tick).saturating_mul(drain);
        level = level.saturating_sub(drained) + cost * unit;
        most = most.max(level.saturating_sub(cap).div_ceil(unit));
        last = *now;
    }
    most
}

#[test]
fn processes_with_different_numbers_of_a_bucket_never_exceed_their_own() {
    let plan = |text: &str| format!("{text} named plan carried").parse::<Limit>().expect("a limit");
    for [generous, tight] in [
        [plan("1000/second"), plan("300/second")],
        [plan("1000/second burst 400"), plan("700/second burst 37")],
        [plan("1000/second"), plan("1000/second burst 100")],
    ] {
        for seed in 0..12 {
            for (pause, way) in [(500, 2_000), (500, 20_000), (2_000, 500), (10_000, 3_000)] {
                let mut fleet = Fleet::of(generous, 4, BATCH, seed, way);
                for at in [1, 3] {
                    fleet.processes[at].share = share(tight, &BATCH);
                }
                fleet.run(1_500, pause);
                fleet.never_exceeds_any_limit([generous, tight]);
                fleet.is_accounted_for();
                assert!(fleet.total() > 100, "{generous}: {}", fleet.total());
            }
        }
    }
}

#[test]
fn a_bucket_never_gives_more_than_burst_and_rate_in_any_interval() {
    let limits = [
        Limit::per_second(1_000),
        Limit::per_second(1_000).burst(200),
        Limit::per_second(700).burst(37),
        // Its ticks are milliseconds.
        Limit::per(1_000_003, Duration::from_secs(86_400)).burst(1_000_003),
    ];
    for limit in limits {
        for seed in 0..12 {
            // From four times the limit to a fifth of it.
            for (pause, way) in [(500, 2_000), (500, 20_000), (2_000, 500), (10_000, 3_000)] {
                let mut fleet = Fleet::new(limit, seed, way);
                fleet.run(1_500, pause);
                fleet.never_exceeds_the_limit();
                fleet.is_accounted_for();
                assert!(fleet.total() > 100, "{limit}: {}", fleet.total());
            }
        }
    }
}

#[test]
fn a_window_never_gives_more_than_its_count() {
    let window = Duration::from_millis(100);
    for seed in 0..40 {
        let mut fleet = Fleet::new(Limit::fixed_window(60, window), seed, 1 + seed * 300);
        fleet.run(3_000, 1_000);
        let mut sums = BTreeMap::<u64, u64>::new();
        for (when, cost) in &fleet.admitted {
            *sums.entry(when / 100_000).or_default() += cost;
        }
        assert!(sums.values().all(|sum| *sum <= 60), "{sums:?}");
        assert!(sums.values().filter(|sum| **sum > 40).count() > 5, "{sums:?}");
        fleet.is_accounted_for();
    }
}
