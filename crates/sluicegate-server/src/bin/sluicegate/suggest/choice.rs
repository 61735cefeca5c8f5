//! Which limit to choose.

use super::client::Client;
use super::ladder::{DAY, HOUR, MINUTE, RATES, WINDOWS, round_up};
use super::population::Population;

/// What the operator allows, and what the log can tell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// The share of clients that limits may touch, before the room.
    pub(super) touch: f64,
    /// How much more than that a client may have.
    pub(super) room: f64,
    /// How long there were requests, in seconds.
    pub(super) covered: Covered,
    /// The unit of its times, in seconds.
    pub(super) resolution: f32,
}

impl Terms {
    /// Whether the log says anything about a window: it has to be about twice as long.
    pub(super) fn covers(&self, window: usize) -> bool {
        self.covered.of(window) >= 1.9 * f64::from(WINDOWS[window].seconds)
    }
}

/// The time between requests, without what a log does not tell of. A line of last month, or of a clock that was wrong, does not make
/// the log of an hour one of weeks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Covered {
    /// With nights without requests.
    days: f64,
    /// Without longer pauses than a third of an hour.
    hours: f64,
}

impl Covered {
    /// Adds the seconds between one request and the next one.
    pub(super) fn add(&mut self, pause: f64) {
        self.days += pause.min(f64::from(WINDOWS[DAY].seconds) / 3.0);
        self.hours += pause.min(f64::from(WINDOWS[HOUR].seconds) / 3.0);
    }

    /// How much of it says something about a window.
    pub(super) const fn of(&self, window: usize) -> f64 {
        if window == DAY { self.days } else { self.hours }
    }

    /// How long the log is: without nights, where it is too short for days.
    pub(super) fn whole(&self) -> f64 {
        let is_of_days = self.days >= 2.0 * f64::from(WINDOWS[DAY].seconds);
        if is_of_days { self.days } else { self.hours }
    }
}

/// A limit that fits, and why.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    /// What fitted: requests for each second, and the least burst with it.
    pub(super) fitted_rate: f64,
    pub(super) fitted_burst: f64,
    /// With room, rounded: requests in a unit of time.
    pub(super) count: u64,
    pub(super) unit: &'static str,
    pub(super) burst: u64,
    /// A limit of a longer window beside it, if it is much lower than what the rate lets through.
    pub(super) quota: Option<(u64, usize)>,
    /// At most as many clients, who do not look automatic, would have been refused at least once.
    pub(super) touched: f64,
    /// The share of the requests that these clients sent.
    pub(super) touched_share: f64,
    /// Those who look automatic, by their place, and whether the limits refuse them, if that is certain.
    pub(super) automatic: Vec<(usize, Option<bool>)>,
    /// Whether the limit is not made for them.
    pub(super) leaves_out: bool,
    /// All for whom the limit is made.
    pub(super) people: f64,
}

impl Choice {
    /// Requests for each second.
    pub(super) fn rate(&self) -> f64 {
        self.count as f64 / seconds(self.unit)
    }

    /// The most requests of one client that are admitted within this many seconds.
    pub(super) fn most_in(&self, seconds: f64) -> f64 {
        let bucket = self.burst as f64 + self.rate() * seconds;
        self.quota.map_or(bucket, |(quota, window)| {
            bucket.min(quota as f64 * (seconds / f64::from(WINDOWS[window].seconds)).ceil())
        })
    }

    /// The limits as files of rules have them.
    pub(super) fn limits(&self) -> Vec<String> {
        let Self { count, unit, burst, .. } = self;
        let bucket = format!("{count}/{unit} burst {burst}");
        let quota =
            self.quota.map(|(quota, window)| format!("fixed {quota}/{}", WINDOWS[window].name));
        std::iter::once(bucket).chain(quota).collect()
    }
}

fn seconds(unit: &str) -> f64 {
    match unit {
        "second" => 1.0,
        "minute" => 60.0,
        _ => 3_600.0,
    }
}

/// The largest share of clients that is left out because it looks automatic. Where more do, programs are who the service
/// is for, and a limit that is not made for them would refuse them.
const MOST_LEFT_OUT: f64 = 0.05;

/// The limit that fits, unless there are no clients.
pub(super) fn choose(population: &Population, terms: &Terms) -> Option<Choice> {
    let clients = &population.clients;
    let weight = |clients: &[&Client]| -> f64 {
        clients.iter().map(|client| population.weight(client)).sum()
    };
    let automatic: Vec<_> =
        (0..clients.len()).filter(|at| clients[*at].looks_automatic(terms.resolution)).collect();
    let all: Vec<&Client> = clients.iter().collect();
    let mut people = all.clone();
    people.retain(|client| !client.looks_automatic(terms.resolution));
    let leaves_out = weight(&people) >= (1.0 - MOST_LEFT_OUT) * weight(&all);
    if !leaves_out {
        people = all;
    }
    let count = weight(&people);
    if people.is_empty() {
        return None;
    }
    let weight_of = |is: &dyn Fn(&Client) -> bool| -> f64 {
        people.iter().filter(|client| is(client)).map(|client| population.weight(client)).sum()
    };
    let allowed = (count * terms.touch).floor();
    // The least value that no more than the allowed ones exceed.
    let exceeded = |value: &dyn Fn(&Client) -> f64, allowed: f64| {
        let mut values: Vec<_> =
            people.iter().map(|client| (value(client), population.weight(client))).collect();
        values.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let mut touched = 0.0;
        let fits = values.into_iter().find(|(_, weight)| {
            touched += weight;
            touched > allowed
        });
        fits.map_or(1.0, |(value, _)| value)
    };
    let longest = [DAY, HOUR].into_iter().find(|window| terms.covers(*window));
    let quota = longest
        .map(|window| (exceeded(&|client| f64::from(client.highest(window)), allowed), window));
    // The corner where one client gets least in its worst minute and in its worst day, or hour in a log that is too short for
    // days. The quota bounds what it gets in the latter, whatever the rate is.
    let price = |(rate, burst): (f64, f64)| {
        let longest = quota.map_or(0.0, |(quota, window)| {
            (burst + rate * f64::from(WINDOWS[window].seconds)).min(quota)
        });
        burst + rate * f64::from(WINDOWS[MINUTE].seconds) + longest
    };
    let fitted = population.rates().iter().enumerate().map(|(place, rate)| {
        (f64::from(*rate), exceeded(&|client| f64::from(client.bursts[place]), allowed).ceil())
    });
    let mut fitted: Vec<_> = fitted.collect();
    // A client may send more in each second than the fastest rate that was tried lets through. Then the burst is what has piled
    // up in the whole log, and says nothing. A bucket of the most in a second of the clock, with a burst of twice as much, refuses
    // nothing.
    let second = exceeded(&|client| f64::from(client.highest(0)), allowed);
    let fastest = f64::from(population.rates()[RATES - 1]);
    if second > fastest {
        fitted.pop_if(|(_, burst)| *burst > 2.0 * second);
        fitted.push((second, 2.0 * second));
    }
    // A bucket that takes longer to fill again than the log lasts may have been large enough by chance.
    let is_proven = |(rate, burst): &(f64, f64)| 2.0 * burst / rate <= terms.covered.of(HOUR);
    let proven = fitted.iter().copied().filter(is_proven);
    let (rate, _) = proven
        .min_by(|one, other| price(*one).total_cmp(&price(*other)))
        .or(fitted.last().copied())?;
    let (unit, length) = match rate * terms.room {
        ..0.1 => ("hour", 3_600.0),
        0.1..30.0 => ("minute", 60.0),
        _ => ("second", 1.0),
    };
    let count_of_unit = round_up(rate * terms.room * length);
    // Rounding has left room, with which the burst can be smaller.
    let fitted_rate = count_of_unit as f64 / length / terms.room;
    let least = |client: &Client, rate| least_burst(client, population.rates(), rate);
    let fitted_burst = exceeded(&|client| least(client, fitted_rate).1, allowed).ceil();
    let mut choice = Choice {
        fitted_rate,
        fitted_burst,
        count: count_of_unit,
        unit,
        burst: round_up(fitted_burst * terms.room),
        quota: None,
        touched: 0.0,
        touched_share: 0.0,
        automatic: Vec::new(),
        leaves_out,
        people: count,
    };
    let (rate, burst) = (choice.rate(), choice.burst as f64);
    let may_exceed = |client: &Client| least(client, rate).1 > burst;
    choice.quota = longest
        .map(|window| {
            // Whom the bucket refuses is counted already.
            let highest = |client: &Client| {
                if may_exceed(client) { 0.0 } else { f64::from(client.highest(window)) }
            };
            let needed = exceeded(&highest, (allowed - weight_of(&may_exceed)).max(0.0));
            (round_up(needed * terms.room), window)
        })
        .filter(|(quota, window)| {
            2.0 * *quota as f64 <= choice.most_in(f64::from(WINDOWS[*window].seconds))
        });
    let exceeds_quota = |client: &Client| {
        choice.quota.is_some_and(|(quota, window)| u64::from(client.highest(window)) > quota)
    };
    let is_touched = |client: &Client| may_exceed(client) || exceeds_quota(client);
    let touched = weight_of(&is_touched);
    let requests_of = |is: &dyn Fn(&Client) -> bool| -> f64 {
        let clients = people.iter().filter(|client| is(client));
        clients.map(|client| population.weight(client) * f64::from(client.requests)).sum()
    };
    let touched_share = requests_of(&is_touched) / requests_of(&|_| true);
    let effect = |client: &Client| {
        if exceeds_quota(client) || least(client, rate).0 > burst {
            Some(true)
        } else if may_exceed(client) {
            None
        } else {
            Some(false)
        }
    };
    let automatic = automatic.into_iter().map(|at| (at, effect(&clients[at]))).collect();
    Some(Choice { touched, touched_share, automatic, ..choice })
}

/// Bounds of the least burst with which a bucket of this rate would have refused nothing. As a function of the rate, it falls and is
/// convex, being the highest of many lines: so it is above the value at the next faster rate that was tried, and below the line between
/// both neighbours.
fn least_burst(client: &Client, rates: &[f32; RATES], rate: f64) -> (f64, f64) {
    let at = |place: usize| (f64::from(rates[place]), f64::from(client.bursts[place]));
    match rates.iter().position(|faster| f64::from(*faster) >= rate) {
        // Slower than all that were tried: nothing bounds it.
        Some(0) => (at(0).1, if at(0).0 > rate { f64::INFINITY } else { at(0).1 }),
        Some(place) => {
            let ((slow, more), (fast, less)) = (at(place - 1), at(place));
            (less, more + (less - more) * (rate - slow) / (fast - slow))
        }
        None => {
            let (second, most) = (f64::from(client.highest(0)), at(RATES - 1).1);
            (1.0, if rate >= second { most.min(2.0 * second) } else { most })
        }
    }
}
