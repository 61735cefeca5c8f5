//! The tree in which a change of one customer copies only the way to that customer.
//!
//! It is a hash array mapped trie (Bagwell, "Ideal Hash Trees", 2001) without the compressed nodes. Each request reads
//! one version. A change makes the next version, which shares all other nodes with the one before.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// The index of each customer's tier.
#[derive(Debug, Clone, Default)]
pub(super) struct Customers {
    /// Its seed is secret, so nobody can choose names that end in one leaf.
    hash: RandomState,
    root: Node,
    count: usize,
}

#[derive(Debug, Clone)]
enum Node {
    /// By the next bits of the hash.
    Branch(Arc<[Self; WIDTH]>),
    Leaf(Arc<Vec<Entry>>),
}

#[derive(Debug, Clone)]
struct Entry {
    hash: u64,
    customer: Arc<str>,
    tier: usize,
}

/// A change copies a node of this size for each level, four with a million customers.
const WIDTH: usize = 1 << BITS;
const BITS: u32 = 4;

/// A longer leaf becomes a branch.
const LONGEST_LEAF: usize = 16;

impl Customers {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn get(&self, customer: &str) -> Option<usize> {
        let hash = self.hash.hash_one(customer);
        let (mut node, mut bits) = (&self.root, hash);
        let leaf = loop {
            match node {
                Node::Branch(nodes) => node = &nodes[place(bits)],
                Node::Leaf(leaf) => break leaf,
            }
            bits >>= BITS;
        };
        leaf.iter().find(|entry| entry.is(hash, customer)).map(|entry| entry.tier)
    }

    pub(super) fn insert(&mut self, customer: Arc<str>, tier: usize) {
        let hash = self.hash.hash_one(&*customer);
        let is_new = self.root.insert(Entry { hash, customer, tier }, 0);
        self.count += usize::from(is_new);
    }

    pub(super) fn remove(&mut self, customer: &str) {
        // A customer who is in no tier must not copy anything.
        if self.get(customer).is_some() {
            self.root.remove(self.hash.hash_one(customer), customer, 0);
            self.count -= 1;
        }
    }
}

impl Node {
    /// Returns whether the customer is new. `shift` is the number of bits that led here.
    fn insert(&mut self, entry: Entry, shift: u32) -> bool {
        match self {
            Self::Branch(nodes) => {
                let node = &mut Arc::make_mut(nodes)[place(entry.hash >> shift)];
                node.insert(entry, shift + BITS)
            }
            Self::Leaf(leaf) => {
                let leaf = Arc::make_mut(leaf);
                if let Some(old) = leaf.iter_mut().find(|old| old.is(entry.hash, &entry.customer)) {
                    old.tier = entry.tier;
                    return false;
                }
                leaf.push(entry);
                if leaf.len() > LONGEST_LEAF && shift < u64::BITS {
                    let mut branch = Self::Branch(Arc::default());
                    for entry in leaf.drain(..) {
                        branch.insert(entry, shift);
                    }
                    *self = branch;
                }
                true
            }
        }
    }

    fn remove(&mut self, hash: u64, customer: &str, shift: u32) {
        match self {
            Self::Branch(nodes) => {
                Arc::make_mut(nodes)[place(hash >> shift)].remove(hash, customer, shift + BITS);
            }
            Self::Leaf(leaf) => Arc::make_mut(leaf).retain(|entry| !entry.is(hash, customer)),
        }
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::Leaf(Arc::default())
    }
}

impl Entry {
    fn is(&self, hash: u64, customer: &str) -> bool {
        self.hash == hash && *self.customer == *customer
    }
}

/// The lowest bits.
fn place(bits: u64) -> usize {
    (bits % WIDTH as u64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map_and_no_version_changes(
            changes in prop::collection::vec((0..300_u32, prop::option::of(0..5_usize)), 0..600),
        ) {
            let (mut customers, mut model) = (Customers::default(), HashMap::new());
            let mut versions = Vec::new();
            for (at, (name, tier)) in changes.into_iter().enumerate() {
                if at % 100 == 0 {
                    versions.push((customers.clone(), model.clone()));
                }
                let name = format!("customer {name}");
                match tier {
                    Some(tier) => {
                        customers.insert(name.as_str().into(), tier);
                        model.insert(name, tier);
                    }
                    None => {
                        customers.remove(&name);
                        model.remove(&name);
                    }
                }
            }
            versions.push((customers, model));
            for (customers, model) in versions {
                prop_assert_eq!(customers.len(), model.len());
                for name in (0..300).map(|name| format!("customer {name}")) {
                    prop_assert_eq!(customers.get(&name), model.get(&name).copied());
                }
            }
        }
    }

    #[test]
    fn a_change_of_one_among_very_many_copies_little() {
        let mut customers = Customers::default();
        for i in 0..100_000 {
            customers.insert(format!("customer {i}").into(), 0);
        }
        for name in ["customer 7", "a new one"] {
            let before = customers.clone();
            let copied = allocation_counter::measure(|| customers.insert(name.into(), 1));
            assert!(copied.bytes_total < 8_192, "{} bytes", copied.bytes_total);
            assert_ne!(before.get(name), Some(1));
            assert_eq!(customers.get(name), Some(1));
        }
    }
}
