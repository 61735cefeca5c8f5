use std::fmt;

use indexmap::IndexMap;

use crate::amount::Amount;
use crate::fair::Demand;
use crate::message::{Ask, bare};

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
    /// The most that it may be using: of what it was granted and has not reported to use no more, the largest grant that
    /// has not ended.
    most: Grant,
    /// The largest grant that ends after that one.
    next: Grant,
}

/// A part of the capacity, and when it has ended.
#[derive(Debug, Clone, Copy, Default)]
struct Grant {
    amount: Amount,
    until: u64,
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
        // Exact: the sum has 128 bits, so that a million false claims cannot make it wrap.
        amount(self.held - millionths(self.by_name[at].most.amount))
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
            (bare(name), wants, holder.most.amount)
        })
    }

    /// Where a client is; `None` if it is not here. The place is valid until a client leaves.
    pub(super) fn find(&self, client: &str) -> Option<usize> {
        self.by_name.get_index_of(client)
    }

    /// Whether a request with this number comes late or twice.
    pub(super) fn has_seen(&self, at: usize, sequence: u64) -> bool {
        sequence <= self.by_name[at].sequence
    }

    /// What a client was granted that has not ended, and that it has not given up.
    pub(super) fn held_by(&self, at: usize) -> Amount {
        self.by_name[at].most.amount
    }

    /// A new client, which holds nothing yet. Returns its place.
    pub(super) fn join(&mut self, now: u64, ask: &Ask<'_>) -> usize {
        let demands = Demands::of(ask);
        let nothing = Grant { amount: Amount::ZERO, until: now };
        let holder = Holder { sequence: 0, demands, most: nothing, next: nothing };
        self.by_name.insert_full(ask.client.into(), holder).0
    }

    /// Ends a grant that is over, though the client was granted less since.
    pub(super) fn turn(&mut self, at: usize, now: u64) {
        self.change(at, |holder| {
            // The larger grant is over. Until now the client may not have heard of the smaller one that came after it.
            if now >= holder.most.until && holder.next.until > holder.most.until {
                holder.most = std::mem::take(&mut holder.next);
            }
        });
    }

    /// A client says what it uses: no more than this, and what it was granted before counts no more than that.
    pub(super) fn report(&mut self, at: usize, uses: Amount) {
        self.change(at, |holder| {
            // Both: what it says now is newer than either of them.
            for grant in [&mut holder.most, &mut holder.next] {
                grant.amount = grant.amount.min(uses);
            }
        });
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

    /// A client may be using this from now on, besides what it was granted before.
    pub(super) fn hold(&mut self, at: usize, sequence: u64, granted: Amount, until: u64) {
        self.change(at, |holder| {
            holder.sequence = sequence;
            // A shorter lease does not end a longer one: the client may not have heard of it.
            let until = until.max(holder.ends());
            // A larger grant covers the smaller ones, so two places are enough, whatever the number of answers on their
            // way.
            if granted >= holder.most.amount {
                (holder.most, holder.next) = (Grant { amount: granted, until }, Grant::default());
            } else {
                // Of several smaller grants, the largest counts until the last one ends.
                holder.next = Grant { amount: granted.max(holder.next.amount), until };
            }
        });
        self.first_end = self.first_end.min(self.by_name[at].ends());
    }

    /// Changes what a client may be using.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut Holder)) {
        let holder = &mut self.by_name[at];
        let before = millionths(holder.most.amount);
        change(holder);
        // The sum is kept, not worked out: it is read with each request.
        self.held = self.held - before + millionths(holder.most.amount);
    }

    /// A client gives everything back.
    pub(super) fn leave(&mut self, client: &str) {
        if let Some(holder) = self.by_name.swap_remove(client) {
            self.held -= millionths(holder.most.amount);
        }
    }

    /// Forgets leases that have ended. Returns whether there were any.
    pub(super) fn end(&mut self, now: u64, gone: &mut impl FnMut(&str)) -> bool {
        // `first_end` may be too early, since grants are renewed, but never too late. So most calls look at no client.
        if now < self.first_end {
            return false;
        }
        let (held, before) = (&mut self.held, self.by_name.len());
        let mut first_end = u64::MAX;
        self.by_name.retain(|name, holder| {
            let is_alive = now < holder.ends();
            if is_alive {
                first_end = first_end.min(holder.ends());
            } else {
                *held -= millionths(holder.most.amount);
                gone(name);
            }
            is_alive
        });
        self.first_end = first_end;
        self.by_name.len() < before
    }
}

impl Holder {
    /// When it has lost everything.
    fn ends(&self) -> u64 {
        self.most.until.max(self.next.until)
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
