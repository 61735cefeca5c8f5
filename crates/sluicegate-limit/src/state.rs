use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::algorithm::sliding_log::Log;
use crate::exact::Earliest;
use crate::part::Part;

/// Two words: all that a bucket or a window remembers. Each algorithm says what they mean.
pub type Words = [u64; 2];

/// The numbers of an algorithm that give its words their meaning, and say how much they hold. They tell the
/// accounts of a [carried](crate::Limit::carried) row from each other.
pub(crate) type Parameters = [u64; 4];

/// For a row without accounts: nothing was written yet, or the words mean the same whatever the numbers are.
pub(crate) const NO_PARAMETERS: Parameters = [0; 4];

/// The state of one key under one limit.
///
/// In a fresh state nothing is spent. A state that has fully recovered equals a fresh one, so it may be dropped and
/// made again. Made by [`Limit::fresh`](super::Limit::fresh).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The shape's own two words.
    #[doc(hidden)]
    pub words: Words,
    /// A bucket of one, for `min_gap`.
    pub(crate) gap: Words,
    /// Since when and for how long the key is banned.
    pub(crate) ban: Words,
    /// What has been refused since the ban began, or since refusals are counted towards one, less what
    /// has been given back that counted then.
    pub(crate) refused: u64,
    /// Since when refusals are counted towards a ban, and how many there were.
    pub(crate) strikes: Words,
    /// The numbers that have written the words, if they can change.
    pub(crate) written: WrittenBy,
    /// What is spent under other numbers, if there are any.
    pub(crate) others: Option<Box<OtherAccounts>>,
    /// The stamps of a sliding log.
    #[doc(hidden)]
    pub log: Option<Box<Log>>,
}

impl State {
    /// A copy without the stamps of a log.
    #[doc(hidden)]
    pub fn without_log(&self) -> Self {
        let Self { words, gap, ban, refused, strikes, written, .. } = *self;
        let others = self.others.clone();
        Self { words, gap, ban, refused, strikes, written, others, log: None }
    }
}

impl State {
    /// Whether the words are an account of these numbers, and the only thing that the state holds.
    #[inline]
    pub(crate) fn is_account_of(&self, parameters: Parameters) -> bool {
        let Self { words: _, gap, ban, refused, strikes, written, others, log } = self;
        let has_others = others
            .as_ref()
            .is_some_and(|others| !others.accounts.is_empty() || others.shut != [0; 2]);
        let more = [gap, ban, strikes].into_iter().flatten().fold(*refused, |all, word| all | word);
        written.parameters == parameters && more == 0 && !has_others && log.is_none()
    }

    /// The state of two words, and nothing else.
    #[inline]
    #[doc(hidden)]
    pub fn of(words: Words) -> Self {
        Self { words, ..Self::default() }
    }
}

/// The numbers that give the words their meaning, of the limit that wrote it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WrittenBy {
    /// The parameters of the algorithm; zeros if nothing is written.
    pub(crate) parameters: Parameters,
    /// Since when the account exists. Earlier charges were not charged to it.
    pub(crate) since: u64,
}

/// The number of accounts in a row besides the deciding one. Cases and tiers rarely take turns with more numbers. If
/// they do, the account that recovers first makes room.
pub(super) const MOST_ACCOUNTS: usize = 7;

/// The accounts that other numbers keep in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OtherAccounts {
    pub(crate) accounts: Vec<Account>,
    /// Since when and for how long new accounts begin with at least `owed` spent, because an account had to make room
    /// before it had recovered.
    pub(crate) shut: Words,
    /// The most tokens that were spent in an account that made room, and all that was charged since.
    pub(crate) owed: u64,
}

/// What is spent under one set of numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) words: Words,
    pub(crate) written: WrittenBy,
}

/// What a limit wrote when it charged a request, kept so that giving it back takes exactly that.
///
/// Opaque: it means something only to the store that made it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Receipt {
    pub(crate) words: Words,
    pub(crate) gap: Words,
    /// Which store of a `Fallback` wrote it, a bit for each fallback passed.
    #[doc(hidden)]
    pub via: u8,
    /// Whether a ban was in force, or refusals were counted towards one: what is charged during a ban was
    /// no reason for it.
    pub(crate) banned: bool,
    /// When a limit that is carried over was charged.
    pub(crate) at: u64,
    /// Orders the charge among the accounts of a limit that is carried over: an account that began later knows
    /// nothing of the charge. Later than `at` where an account began in the same microsecond.
    pub(crate) since: u64,
    /// Whether all accounts of the row took all of the charge.
    pub(crate) by_all: bool,
    /// Whether nothing was charged, though the request was admitted: the limit is a shadow, or the store had
    /// no room to count it.
    pub(crate) void: bool,
    /// Whether the charge was written to a row that several keys share.
    pub(crate) together: bool,
    /// The part of the limit that was charged, as the bits of a [`Part`](super::Part); 0 for all of it.
    #[doc(hidden)]
    pub part: u32,
}

impl Receipt {
    /// The mark of a store that does not decide by [`decide`](super::decide): two words of its own.
    pub const fn from_words(words: [u64; 2]) -> Self {
        Self {
            words,
            gap: [0; 2],
            via: 0,
            banned: false,
            at: 0,
            since: 0,
            by_all: false,
            void: false,
            together: false,
            part: 0,
        }
    }

    /// Whether nothing was charged, though the request was admitted: the limit is a
    /// [shadow](super::Limit::shadow), or the store had no room to count it. There is nothing to settle.
    pub const fn is_void(&self) -> bool {
        self.void
    }

    /// Whether the charge was written to a row that several keys share.
    #[doc(hidden)]
    pub const fn is_together(&self) -> bool {
        self.together
    }

    /// The words that [`from_words`](Self::from_words) was given.
    pub const fn words(&self) -> [u64; 2] {
        self.words
    }
}

/// The time is unknown. Every real time is smaller, and this number is exact in a double.
pub(crate) const UNKNOWN: u64 = u64::MAX - 1;

/// Never: the cost is more than a limit ever admits.
pub(crate) const NEVER: u64 = u64::MAX;

/// The part that a limit had in a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// It admitted, and was charged.
    Charged,
    /// It would admit.
    #[default]
    Asked,
    /// The request was refused, by this limit or by others.
    Refused(bool),
    /// It is a shadow, and would have refused or delayed the request.
    Shadowed,
}

impl Role {
    /// Whether the limit was not charged, because it or another limit did not admit the request.
    pub(crate) const fn is_refused(self) -> bool {
        matches!(self, Self::Refused(_) | Self::Shadowed)
    }
}

/// What the arithmetic answers for a limit whose state is two words. Everything else follows from it.
///
/// Plain numbers, so that each is written once, directly into the returned outcome. A processor stalls if a value is
/// written in one size and read in another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// The words as they are now.
    pub(crate) first: u64,
    pub(crate) second: u64,
    pub(crate) now: u64,
    /// For a request that goes ahead, microseconds until then. For a refused one, microseconds until it may come again,
    /// [`UNKNOWN`] or [`NEVER`].
    pub(crate) micros: u64,
    /// The part of the limit that has decided, as the bits of a [`Part`]; 0 for all of it.
    pub(crate) part: u32,
    pub(crate) role: Role,
    pub(crate) via: u8,
    /// Whether the words are those of the only account in the row of a limit that is carried over.
    pub(crate) is_account: bool,
}

impl Step {
    /// The cost was spent, and these are the words after it.
    #[inline]
    pub(crate) const fn admit([first, second]: Words, now: u64) -> Self {
        let (part, role, via, is_account) = (0, Role::Charged, 0, false);
        Self { first, second, now, micros: 0, part, role, via, is_account }
    }

    /// Nothing has changed: the request may come again at the `earliest`.
    #[inline]
    pub(crate) const fn refuse([first, second]: Words, now: u64, earliest: Earliest) -> Self {
        let micros = match earliest {
            Earliest::At(delay) => delay,
            Earliest::Unknown(_) => UNKNOWN,
            Earliest::Never => NEVER,
        };
        let (part, role, via, is_account) = (0, Role::Refused(true), 0, false);
        Self { first, second, now, micros, part, role, via, is_account }
    }

    /// The words and the part that the limit had in a decision about several.
    pub(crate) const fn of_words([first, second]: Words, now: u64, role: Role) -> Self {
        Self { first, second, now, micros: 0, part: 0, role, via: 0, is_account: false }
    }

    /// Whether the cost was spent.
    #[inline]
    pub fn is_admitted(&self) -> bool {
        self.role == Role::Charged
    }

    /// Whether the cost is more than the limit ever admits.
    #[inline]
    pub const fn never_fits(&self) -> bool {
        self.micros == NEVER
    }

    /// The words of the row, after the step.
    #[inline]
    pub const fn words(&self) -> Words {
        [self.first, self.second]
    }

    /// When it was decided.
    #[inline]
    pub const fn decided_at(&self) -> u64 {
        self.now
    }

    /// Remembers that it was decided by a part of the limit.
    #[inline]
    #[must_use]
    pub const fn by_part(mut self, part: Part) -> Self {
        self.part = part.to_bits();
        self
    }

    /// The same, of words that are the only account in the row of a limit that is carried over.
    #[inline]
    pub(crate) const fn of_account(self) -> Self {
        Self { is_account: true, ..self }
    }

    /// The words are what was written. If nothing was charged, nothing can be given back.
    pub(crate) fn receipt(&self) -> Receipt {
        let words = if self.role == Role::Charged { self.words() } else { [0; 2] };
        // A shadow that would have refused charged nothing, although the request was admitted.
        let void = self.role == Role::Shadowed;
        let receipt =
            Receipt { via: self.via, void, part: self.part, ..Receipt::from_words(words) };
        match self.is_account && self.role == Role::Charged {
            // The account was there before, and no other had to have room for the charge.
            true => Receipt { at: self.now, since: self.now, by_all: true, ..receipt },
            false => receipt,
        }
    }
}
