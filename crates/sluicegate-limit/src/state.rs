use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::algorithm::sliding_log::Log;

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
