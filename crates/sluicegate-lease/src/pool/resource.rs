use std::collections::BTreeSet;
use std::time::Duration;

use crate::amount::Amount;
use crate::fair::Demand;
use crate::message::{Answer, Ask, AskError, Grant, millis};
use crate::pool::bands::Bands;
use crate::pool::holders::Holders;
use crate::pool::turns::Turns;
use crate::template::{Algorithm, Source, Template};

/// One resource: its clients, and how its capacity is divided among them.
#[derive(Debug, Clone)]
pub(super) struct Resource {
    template: Template,
    /// What a parent has granted, and until when.
    leased: (Amount, u64),
    holders: Holders,
    bands: Bands,
    turns: Turns,
    weights: u64,
    increase: DemandIncrease,
    /// Something has changed since the last division.
    is_dirty: bool,
    /// When to divide again.
    next_division: u64,
    learning: Option<Learning>,
    /// Clients in the list of earlier masters that had not reported when learning ended.
    forgotten: BTreeSet<Box<str>>,
    /// What the client was granted that has just said that it uses more.
    not_believed: Option<Amount>,
    scratch: Vec<Demand>,
}

/// Up to so many clients, each request divides anew, so that its answer is exact.
const FEW: usize = 32;
/// How often the capacity is divided among more.
const DIVISION_EVERY: u64 = 100;
/// What counts as "at once" for a client.
const AT_ONCE: Duration = Duration::from_millis(10);
/// A server's clock may be quicker than a client's by one part in this many. Rounding takes up to 2 ms more.
const CLOCK_DRIFT: u64 = 64;

impl Resource {
    pub(super) fn new(template: Template, learning: Option<Learning>) -> Self {
        Self {
            template,
            leased: (Amount::ZERO, 0),
            holders: Holders::default(),
            bands: Bands::default(),
            turns: Turns::default(),
            weights: 0,
            increase: DemandIncrease::default(),
            is_dirty: true,
            next_division: 0,
            learning,
            forgotten: BTreeSet::new(),
            not_believed: None,
            scratch: Vec::new(),
        }
    }

    /// Puts another configuration in force. What is held stays held.
    pub(super) fn set_template(&mut self, template: &Template) {
        if self.template != *template {
            self.template = template.clone();
            self.is_dirty = true;
        }
    }

    /// A parent has granted this until `until`.
    pub(super) fn supply(&mut self, capacity: Amount, until: u64) {
        // The end of a lease moves with each refresh; only another capacity changes the shares.
        self.is_dirty |= self.leased.0 != capacity;
        self.leased = (capacity, until);
        self.increase.supplied();
    }

    /// Whether clients want much more than a parent was told, and than there is.
    pub(super) fn wants_much_more(&self, now: u64) -> bool {
        self.template.source == Source::Parent && self.increase.is_untold(self.capacity(now))
    }

    pub(super) fn told_parent(&mut self) {
        self.increase.told();
    }

    /// Whether the last client that asked was not believed, and what it was granted.
    pub(super) fn take_not_believed(&mut self) -> Option<Amount> {
        self.not_believed.take()
    }

    pub(super) fn is_learning(&self) -> bool {
        self.learning.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.holders.len() == 0 && self.learning.is_none()
    }

    /// Clients that have never been here and hold nothing any more.
    pub(super) fn take_forgotten(&mut self) -> BTreeSet<Box<str>> {
        std::mem::take(&mut self.forgotten)
    }

    pub(super) fn holders(&self) -> &Holders {
        &self.holders
    }

    pub(super) fn template(&self) -> &Template {
        &self.template
    }

    /// What there is to hand out.
    pub(super) fn capacity(&self, now: u64) -> Amount {
        match self.template.source {
            Source::Own(capacity) => capacity,
            Source::Parent if now < self.leased.1 => self.leased.0,
            Source::Parent => Amount::ZERO,
        }
    }

    /// The longest lease that can be cut from here: none outlives the lease that it is cut from.
    fn ttl(&self, now: u64) -> u64 {
        let lease = millis(self.template.lease);
        match self.template.source {
            Source::Own(_) => lease,
            Source::Parent => lease.min(self.leased.1.saturating_sub(now)),
        }
    }

    /// Forgets leases that have ended, and divides the capacity if something has changed.
    pub(super) fn tick(&mut self, now: u64, gone: &mut impl FnMut(&str)) {
        self.end_learning(now);
        // A division looks at every client. Among many, one in each interval is enough, and a request between two of them is
        // answered by the last one.
        if now < self.next_division && self.holders.len() > FEW {
            return;
        }
        self.next_division = now.saturating_add(DIVISION_EVERY);
        // A lease that ends frees capacity, so the others' shares change with it.
        self.is_dirty |= self.holders.end(now, gone);
        // The parent's lease is over. Nothing may be handed out, though clients keep what was cut from it until then.
        if let (Source::Parent, true) = (self.template.source, now >= self.leased.1) {
            self.supply(Amount::ZERO, 0);
        }
        self.divide(now);
    }

    fn end_learning(&mut self, now: u64) {
        if let Some(learning) = self.learning.take_if(|learning| learning.is_over(now)) {
            self.forgotten = learning.unknown;
        }
    }

    fn divide(&mut self, now: u64) {
        if !std::mem::take(&mut self.is_dirty) {
            return;
        }
        // `scratch` keeps its memory from one division to the next, as it has a place for each demand of all clients.
        self.holders.demands().for_each(|demands| self.scratch.extend_from_slice(demands));
        self.weights = self.scratch.iter().map(|demand| demand.want.weight).sum();
        self.increase.wants(now, self.scratch.iter().map(|demand| demand.want.wants).sum());
        self.bands = Bands::divide(self.capacity(now), &self.template, &mut self.scratch);
        let is_whole = self.scratch.iter().any(|demand| demand.whole);
        self.turns = match is_whole {
            true => Turns::of(&self.bands, self.holders.demands()),
            false => Turns::default(),
        };
        self.scratch.clear();
    }

    pub(super) fn ask(&mut self, now: u64, ask: &Ask<'_>, fence: u64) -> Result<Answer, AskError> {
        // Numbers only grow. A request that was overtaken by a newer one says what the client had before that, and to
        // believe it would free capacity that is in use.
        let found = self.holders.find(ask.client);
        if found.is_some_and(|at| self.holders.has_seen(at, ask.sequence)) {
            return Err(AskError::Stale);
        }
        let mut may_hold = false;
        if let Some(learning) = &mut self.learning {
            // It was sent before the client met this master, and may be late by a whole reign: what it says that it has may have been
            // granted to another since.
            if ask.fence != fence {
                return Ok(Answer::AskAgain);
            }
            // Neither side knows what is held: this server asks its clients, and the client asks its own. Both wait.
            if ask.learning {
                return Ok(Answer::Keep(self.template.refresh.min(LEARNING_REFRESH)));
            }
            // Its report is what the old master's grant has become. A known client is waited for until it comes.
            may_hold = learning.reported(ask.client);
        }
        // From here on it counts, whatever it is answered: the answer may be lost.
        let at = self.remember(now, ask, found);
        // First what time has ended, then what it reports: a grant that is over must not come back by a report.
        self.holders.turn(at, now);
        let ttl = self.ttl(now);
        if may_hold {
            // Nobody here knows what it was granted.
            self.hold(now, at, ask, ask.uses(), ttl);
        }
        // Belief goes as far as memory: more than this nobody here has granted.
        // Read before the report lowers it.
        let held = self.holders.held_by(at);
        if ask.uses() > held {
            self.not_believed = Some(held);
        }
        // A server that learns does not know what its clients use, so its report lowers nothing.
        if !ask.learning {
            self.holders.report(at, ask.uses());
        }
        let mut part = match &self.learning {
            // While it learns, nobody gets more than before: the rest may be in use by clients that have not reported
            // yet.
            Some(_) => Part::all(ask.has.min(ask.wants()).min(held).min(self.most(now))),
            // It gets what it had before it lost its memory.
            None if ask.learning => Part::all(held.min(self.most(now))),
            None => self.fair_part(now, ask, at),
        };
        if ttl == 0 {
            // A parent has granted nothing yet. What clients hold of the old master goes on, and counts.
            if self.learning.is_some() {
                self.hold(now, at, ask, Amount::ZERO, ttl);
                return Ok(Answer::Keep(self.template.refresh.min(LEARNING_REFRESH)));
            }
            part.granted = Amount::ZERO;
        }
        self.hold(now, at, ask, part.granted, ttl);
        // Worked out before learning may end with this very report: the others get more from the next request on.
        let refresh = self.refresh(now, ask, part, ttl);
        self.end_learning(now);
        Ok(Answer::Grant(Grant {
            capacity: part.granted,
            ttl: Duration::from_millis(ttl),
            refresh,
            safe: self.safe(now, ask),
        }))
    }

    /// What the client should have, as far as it is free.
    fn fair_part(&mut self, now: u64, ask: &Ask<'_>, at: usize) -> Part {
        match self.template.algorithm {
            Algorithm::None => return Part::all(ask.wants()),
            Algorithm::Static => return Part::all(ask.wants().min(self.capacity(now))),
            Algorithm::ProportionalShare | Algorithm::FairShare => {}
        }
        if self.holders.len() <= FEW || now >= self.next_division {
            self.divide(now);
        }
        // The share is what it should have; what others still hold of it comes free when they have said so.
        // The last division may be as old as 100 ms, so its shares may add up to more than is free now. The bound below
        // by what others hold makes up for it: a share is a wish, and what is free is the truth.
        let refresh = millis(self.template.refresh);
        let share = self.turns.share(now, refresh, &self.bands, at, ask.demands);
        let (own, others) = (self.holders.held_by(at), self.holders.held_by_others(at));
        // Where more is held than there is, because there is less than before, a client may keep its own.
        let free = self.capacity(now).saturating_sub(others);
        let granted = share.min(free.max(own.min(ask.has)));
        let is_whole = ask.demands.iter().all(|demand| demand.whole);
        Part { granted: if is_whole { Amount::units(granted.as_units()) } else { granted }, share }
    }

    /// The most that one client can have.
    fn most(&self, now: u64) -> Amount {
        match (self.template.algorithm, self.template.source) {
            (Algorithm::None, _) => Amount::MAX,
            // The parent will say how much there is.
            (_, Source::Parent) if now >= self.leased.1 => Amount::MAX,
            _ => self.capacity(now),
        }
    }

    /// Writes down what a client wants. Returns its place.
    fn remember(&mut self, now: u64, ask: &Ask<'_>, found: Option<usize>) -> usize {
        match found {
            Some(at) => {
                self.is_dirty |= !ask.learning && self.holders.want(at, ask);
                at
            }
            None => {
                self.is_dirty = true;
                self.holders.join(now, ask)
            }
        }
    }

    /// Writes down what a client may be using from now on: this, and what is in use of what it was granted before.
    fn hold(&mut self, now: u64, at: usize, ask: &Ask<'_>, granted: Amount, ttl: u64) {
        let lease = if ttl == 0 { millis(self.template.lease) } else { ttl };
        // What is in use goes on after a smaller grant, so it counts until the client says that it has ended.
        let in_use = ask.outstanding.min(self.holders.held_by(at));
        // Longer than the client counts, so that nothing is free here that is still in use there.
        let until = now.saturating_add(with_drift(lease));
        self.holders.hold(at, ask.sequence, granted.max(in_use), until);
    }

    fn refresh(&self, now: u64, ask: &Ask<'_>, part: Part, ttl: u64) -> Duration {
        if ttl == 0 {
            // There is nothing to give and nothing to give back, whatever the client uses without a lease. The server's
            // own lease will be renewed, or come.
            return self.template.refresh / 4;
        }
        if part.granted < ask.has {
            // What it gives back is free for others when it has said so.
            // Each report that comes late keeps somebody else from capacity that is theirs.
            return AT_ONCE;
        }
        let refresh = match &self.learning {
            Some(_) => self.template.refresh.min(LEARNING_REFRESH),
            // Its share will be free when others have given it back.
            None if part.granted < part.share => self.template.refresh / 4,
            // So will be what its server has asked its parent for.
            None if self.may_get_more(now, ask, part) => self.template.refresh / 4,
            None => self.template.refresh,
        };
        refresh.min(Duration::from_millis(ttl / 2)).max(AT_ONCE)
    }

    fn may_get_more(&self, now: u64, ask: &Ask<'_>, part: Part) -> bool {
        let is_leased = self.template.source == Source::Parent;
        is_leased && part.granted < ask.wants() && self.increase.is_awaited(now)
    }

    fn safe(&self, now: u64, ask: &Ask<'_>) -> Amount {
        let weight: u64 = ask.demands.iter().map(|demand| demand.want.weight).sum();
        self.template
            .safe
            .unwrap_or_else(|| self.capacity(now).share(weight, self.weights.max(weight)))
    }

    /// What the safe capacities of all clients sum up to.
    pub(super) fn safe_of_all(&self, now: u64) -> Amount {
        let clients = self.holders.len() as u64;
        match self.template.safe {
            Some(safe) => Amount::from_millionths(safe.millionths().saturating_mul(clients)),
            None if clients == 0 => Amount::ZERO,
            None => self.capacity(now),
        }
    }

    /// A client gives everything back. Returns whether it may have held something until now.
    ///
    /// `has_met` says that the client sent this after it had met this master.
    pub(super) fn release(&mut self, client: &str, sequence: u64, has_met: bool) -> bool {
        let found = self.holders.find(client);
        if found.is_some_and(|at| self.holders.has_seen(at, sequence)) {
            return false;
        }
        // Otherwise the release may be one that was sent to the last master, and another process of the same name may
        // have been granted something since.
        let was_unknown = match &mut self.learning {
            Some(learning) if has_met => learning.unknown.remove(client),
            _ => false,
        };
        self.holders.leave(client);
        self.is_dirty |= found.is_some();
        found.is_some() || was_unknown
    }
}

/// A part of the capacity.
#[derive(Debug, Clone, Copy)]
struct Part {
    granted: Amount,
    /// What would be granted if nobody else held it.
    share: Amount,
}

impl Part {
    fn all(share: Amount) -> Self {
        Self { granted: share, share }
    }
}

/// How often clients ask while a server learns.
const LEARNING_REFRESH: Duration = Duration::from_secs(1);

pub(super) fn with_drift(lease: u64) -> u64 {
    lease + lease / CLOCK_DRIFT + 2
}

/// What a new master has still to learn of a resource.
#[derive(Debug, Clone)]
pub(super) struct Learning {
    /// When every grant of the last master has ended.
    until: u64,
    /// Clients in the list of earlier masters that have not reported yet.
    unknown: BTreeSet<Box<str>>,
    /// Whether nobody else can hold a lease.
    are_all_known: bool,
}

impl Learning {
    pub(super) fn new(until: u64, known: BTreeSet<Box<str>>, are_all_known: bool) -> Self {
        Self { until, unknown: known, are_all_known }
    }

    pub(super) fn is_over(&self, now: u64) -> bool {
        now >= self.until || (self.are_all_known && self.unknown.is_empty())
    }

    /// A client has told what it holds. Returns whether it may hold something that is not known yet.
    pub(super) fn reported(&mut self, client: &str) -> bool {
        self.unknown.remove(client) || !self.are_all_known
    }
}

/// Whether clients want much more than the parent of their server knows, so that nobody waits for a refresh interval at
/// each level of a tree.
#[derive(Debug, Clone, Default)]
pub(super) struct DemandIncrease {
    /// What clients want now, what the parent was told that they want, and for what it has granted something.
    wanted: Amount,
    told: Amount,
    supplied: Amount,
    /// Since when they want much more than that.
    since: Option<u64>,
}

/// Clients ask more often for so long, in milliseconds, if nothing comes from the parent.
const AWAITED: u64 = 10_000;

impl DemandIncrease {
    pub(super) fn wants(&mut self, now: u64, wanted: Amount) {
        // The time of the first moment at which much more is wanted is kept, so that asking often ends, even if the
        // parent has no more to give.
        self.wanted = wanted;
        self.since = self.since.or(Some(now)).filter(|_| is_much_more(wanted, self.supplied));
    }

    pub(super) fn told(&mut self) {
        self.told = self.wanted;
    }

    /// The parent has answered what it was told.
    pub(super) fn supplied(&mut self) {
        self.supplied = self.told;
        self.since = self.since.filter(|_| is_much_more(self.wanted, self.supplied));
    }

    /// Whether clients want much more than the parent was told and than it has granted.
    pub(super) fn is_untold(&self, capacity: Amount) -> bool {
        // Both: a parent that was told already needs no second message, and where enough is there nobody waits.
        is_much_more(self.wanted, self.told) && self.wanted > capacity
    }

    /// Whether the parent will soon answer.
    pub(super) fn is_awaited(&self, now: u64) -> bool {
        self.since.is_some_and(|since| now < since.saturating_add(AWAITED))
    }
}

fn is_much_more(wanted: Amount, before: Amount) -> bool {
    // A quarter more. With less, each level of a tree would hurry for the small changes of the one below.
    wanted.millionths() > before.millionths().saturating_add(before.millionths() / 4)
}
