use std::fmt;

use indexmap::IndexMap;

use crate::amount::Amount;
use crate::demand::Demand;
use crate::pool::ask::Ask;
use crate::rules::{Rule, holds};

/// The clients of a resource.
#[derive(Clone, Default)]
pub(super) struct Holders {
    /// In an order that depends on the requests alone, so that the same requests have the same results in every process.
    by_name: IndexMap<Box<str>, Holder>,
    /// The sum of what they may be using, in millionths. Lies of many clients do not fit 64 bits.
    held: u128,
    /// No lease ends before this.
    first_end: u64,
}

/// A client of a resource.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    /// The newest request.
    sequence: u64,
    demands: Demands,
    /// The most that it may be using: what it reported, or what it was granted since.
    held: Amount,
    /// The part of that which masters have granted. A client that uses more has no right to it.
    own: Amount,
    /// When it has lost all of that.
    expires: u64,
}

/// What a client may be using.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    pub(super) granted: Amount,
    /// What it says.
    pub(super) claimed: Amount,
    /// How much of that has to be believed, because nobody here knows what it was granted.
    pub(super) believed: Amount,
}

/// Nearly every client has one demand, which needs no allocation.
#[derive(Debug, Clone)]
enum Demands {
    One(Demand),
    Several(Box<[Demand]>),
}

impl Holders {
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// What all of them may be using.
    pub(super) fn held(&self) -> Amount {
        amount(self.held)
    }

    /// What all but one of them may be using.
    pub(super) fn held_by_others(&self, at: usize) -> Amount {
        amount(self.held - millionths(self.by_name[at].held))
    }

    pub(super) fn has(&self, client: &str) -> bool {
        self.by_name.contains_key(client)
    }

    pub(super) fn demands(&self) -> impl Iterator<Item = &[Demand]> {
        self.by_name.values().map(|holder| holder.demands.as_slice())
    }

    /// The name of each client, what it wants and what it may be using.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, Amount, Amount)> {
        self.by_name.iter().map(|(name, holder)| {
            let wants = holder.demands.as_slice().iter().map(|demand| demand.want.wants).sum();
            (&**name, wants, holder.held)
        })
    }

    /// Where a client is; `None` if it is not here. The place is valid until a client leaves.
    pub(super) fn find(&self, client: &str) -> Option<usize> {
        self.by_name.get_index_of(client)
    }

    /// Whether a request with this number comes late or twice.
    pub(super) fn has_seen(&self, at: usize, sequence: u64) -> bool {
        sequence <= self.by_name[at].sequence && holds(Rule::IgnoreStaleRequests)
    }

    /// What a client holds because it was granted.
    pub(super) fn owned_by(&self, at: usize) -> Amount {
        self.by_name[at].own
    }

    /// A new client, which holds nothing yet. Returns its place.
    pub(super) fn join(&mut self, now: u64, ask: &Ask<'_>) -> usize {
        let demands = Demands::of(ask);
        let (held, own) = (Amount::ZERO, Amount::ZERO);
        let holder = Holder { sequence: 0, demands, held, own, expires: now };
        self.by_name.insert_full(ask.client.into(), holder).0
    }

    /// A client wants something. Returns whether that is new.
    pub(super) fn want(&mut self, at: usize, ask: &Ask<'_>) -> bool {
        let holder = &mut self.by_name[at];
        let is_new = holder.demands.as_slice() != ask.demands;
        if is_new {
            holder.demands = Demands::of(ask);
        }
        is_new
    }

    /// What a client may be using from now on, and until when.
    pub(super) fn hold(&mut self, at: usize, sequence: u64, hold: Hold, until: u64) {
        let holder = &mut self.by_name[at];
        let held = hold.granted.max(hold.claimed);
        let claimed = hold.claimed.min(hold.believed.max(holder.own));
        self.held = self.held - millionths(holder.held) + millionths(held);
        holder.sequence = sequence;
        holder.held = held;
        holder.own = hold.granted.max(claimed);
        holder.expires = holder.expires.max(until);
        self.first_end = self.first_end.min(holder.expires);
    }

    /// A client gives everything back.
    pub(super) fn leave(&mut self, client: &str) {
        if let Some(holder) = self.by_name.swap_remove(client) {
            self.held -= millionths(holder.held);
        }
    }

    /// Forgets leases that have ended. Returns whether there were any.
    pub(super) fn end(&mut self, now: u64, gone: &mut impl FnMut(&str)) -> bool {
        if now < self.first_end {
            return false;
        }
        let (held, before) = (&mut self.held, self.by_name.len());
        let mut first_end = u64::MAX;
        self.by_name.retain(|name, holder| {
            let is_alive = now < holder.expires;
            if is_alive {
                first_end = first_end.min(holder.expires);
            } else {
                *held -= millionths(holder.held);
                gone(name);
            }
            is_alive
        });
        self.first_end = first_end;
        self.by_name.len() < before
    }
}

fn millionths(amount: Amount) -> u128 {
    u128::from(amount.millionths())
}

/// At most [`Amount::MAX`], which is more than any resource has.
fn amount(millionths: u128) -> Amount {
    u64::try_from(millionths).map_or(Amount::MAX, Amount::from_millionths)
}

/// Shows what decides how it goes on.
impl fmt::Debug for Holders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<_> = self.by_name.iter().collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        f.debug_map().entries(sorted).finish()
    }
}

impl Demands {
    fn of(ask: &Ask<'_>) -> Self {
        match ask.demands {
            [demand] => Self::One(*demand),
            several => Self::Several(several.into()),
        }
    }

    fn as_slice(&self) -> &[Demand] {
        match self {
            Self::One(demand) => std::slice::from_ref(demand),
            Self::Several(demands) => demands,
        }
    }
}
