use std::cmp::Ordering;
use std::collections::BTreeMap;

use sluicegate_lease::Pool;

use super::capacity::{Capacity, Client, MOST, Resource};
use crate::capacity::Shared;

/// What the pool has leased, and the capacities of the file that nobody has asked for, by name.
pub(crate) fn leased(shared: &Shared) -> Capacity {
    let mut resources = BTreeMap::new();
    for capacity in shared.capacities().iter() {
        let (name, capacity) = (capacity.name.to_string(), capacity.per_second.as_f64());
        resources
            .insert(name.clone(), Resource { resource: name, capacity, ..Resource::default() });
    }
    for resource in asked(shared) {
        resources.insert(resource.resource.clone(), resource);
    }
    Capacity { resources: resources.into_values().collect(), members: Vec::new() }
}

/// The resources that clients have asked for. A look starts nothing, and leases wait for it, so it is divided into short
/// ones: one at all resources, which are sorted afterwards, and one at the clients of each resource that is shown.
fn asked(shared: &Shared) -> Vec<Resource> {
    let mut all = shared.if_started(Pool::snapshot).unwrap_or_default();
    all.retain(|resource| resource.clients > 0);
    keep_first(&mut all, MOST, |one, other| one.name.cmp(&other.name));
    let shown = all.into_iter().map(|resource| {
        let look = |pool: &Pool| clients(pool, &resource.name);
        // The last client may have gone since.
        let (clients, more) = shared.if_started(look).unwrap_or_default();
        Resource {
            clients,
            more,
            capacity: resource.capacity.as_f64(),
            wants: resource.wanted.as_f64(),
            granted: resource.held.as_f64(),
            resource: resource.name.into(),
        }
    });
    shown.collect()
}

/// The clients of a resource that have most, and how many others there are.
fn clients(pool: &Pool, resource: &str) -> (Vec<Client>, u64) {
    let mut clients: Vec<_> = pool.clients(resource).collect();
    let more = clients.len().saturating_sub(MOST) as u64;
    keep_first(&mut clients, MOST, |one, other| (other.2, one.0).cmp(&(one.2, other.0)));
    let clients = clients.into_iter().map(|(name, wants, held)| Client {
        client: name.to_owned(),
        wants: wants.as_f64(),
        granted: held.as_f64(),
    });
    (clients.collect(), more)
}

/// Keeps what comes first, in order, and at most `most` of it. Only what is kept is sorted.
fn keep_first<T>(all: &mut Vec<T>, most: usize, order: impl Fn(&T, &T) -> Ordering) {
    if all.len() > most {
        all.select_nth_unstable_by(most, &order);
        all.truncate(most);
    }
    all.sort_unstable_by(order);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_first_is_kept_in_order() {
        // 7 and 1,000 have no common divisor, so each number comes once.
        let mixed: Vec<u32> = (0..1_000).map(|at| at * 7 % 1_000).collect();
        for most in [0, 1, 100, 1_000, 2_000] {
            let mut kept = mixed.clone();
            keep_first(&mut kept, most, |one, other| other.cmp(one));
            let expected: Vec<u32> = (0..1_000).rev().take(most).collect();
            assert_eq!(kept, expected);
        }
    }
}
