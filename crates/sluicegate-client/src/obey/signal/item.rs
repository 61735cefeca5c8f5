use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use smallvec::SmallVec;

/// Most quotas that are read from one response. Servers announce one or two, three at most.
pub const MAX_QUOTAS: usize = 8;

/// The items of a field, at most [`MAX_QUOTAS`] of them.
pub(super) type Items = SmallVec<[Item; 2]>;

/// An item of a field of either name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Item {
    /// A hash of the policy's name and the partition key.
    pub(super) id: u64,
    pub(super) remaining: Option<u64>,
    pub(super) reset: Option<u64>,
    pub(super) limit: Option<u64>,
    pub(super) window: Option<u64>,
    pub(super) counts_requests: bool,
    pub(super) counts_places: bool,
}

impl Item {
    /// An item without parameters.
    pub(super) const fn new() -> Self {
        Self {
            id: 0,
            remaining: None,
            reset: None,
            limit: None,
            window: None,
            counts_requests: true,
            counts_places: false,
        }
    }

    /// Sets the parameter `key`, if it is one that has a number.
    pub(super) fn set_number(&mut self, key: &str, number: u64) {
        match key {
            "r" => self.remaining = Some(number),
            "t" => self.reset = Some(number),
            "q" => self.limit = Some(number),
            "w" => self.window = Some(number).filter(|window| *window > 0),
            _ => {}
        }
    }

    /// Sets what is counted.
    pub(super) fn set_unit(&mut self, unit: &str) {
        self.counts_requests = unit == "requests";
        self.counts_places = unit == "concurrent-requests";
    }

    /// Adds it under a name and the hash of a partition key, if there is room.
    pub(super) fn add_to(mut self, items: &mut Items, name: &[u8], key: u64) {
        if items.len() < MAX_QUOTAS {
            let mut hasher = FixedState::default().build_hasher();
            hasher.write(name);
            hasher.write_u64(key);
            self.id = hasher.finish();
            items.push(self);
        }
    }
}
