//! Something for each policy, found without a lock.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::http::line::Line;
use crate::limit::{Limit, LimitInternals as _};

/// The number of policies that are kept apart. Rules that choose limits for each request can name any number.
pub(crate) const MOST: usize = 64;

/// The name for all policies beyond that number.
const OTHERS: &str = "other";

/// Data kept for each policy. Limits with the same name form one policy. It is made when the policy first occurs, and
/// kept. The number is bounded.
pub(crate) struct ByPolicy<T> {
    /// Filled from the front. The last one is for all policies without room.
    slots: Box<[OnceLock<Box<Policy<T>>>]>,
    /// Names that may be kept apart, beyond the bound of this list.
    names: Option<&'static Names>,
}

/// The names of policies that are kept apart in the whole process, however many layers it has. Each is a label of
/// time series, which cost the operator.
pub(crate) struct Names {
    growing: Mutex<BTreeSet<Box<str>>>,
    /// All of them, once there is no room for more. They never change then, and are read without a lock.
    full: OnceLock<BTreeSet<Box<str>>>,
}

impl Names {
    #[cfg(any(test, feature = "metrics"))]
    pub(crate) const fn new() -> Self {
        Self { growing: Mutex::new(BTreeSet::new()), full: OnceLock::new() }
    }

    /// Whether `name` is one of them, or there is room for it.
    fn admit(&self, name: &str) -> bool {
        if let Some(names) = self.full.get() {
            return names.contains(name);
        }
        let mut names = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_in = names.contains(name) || names.len() < MOST && names.insert(name.into());
        if names.len() == MOST {
            self.full.get_or_init(|| names.clone());
        }
        is_in
    }
}

pub(crate) struct Policy<T> {
    /// One of the policy's limits. Most policies have only one.
    limit: Limit,
    pub(crate) name: Box<str>,
    pub(crate) kept: T,
}

impl<T> ByPolicy<T> {
    pub(crate) fn new() -> Self {
        Self { slots: (0..=MOST).map(|_| OnceLock::new()).collect(), names: None }
    }

    /// Keeps apart only policies that `names` have room for.
    #[cfg(any(test, feature = "metrics"))]
    pub(crate) fn within(names: &'static Names) -> Self {
        Self { names: Some(names), ..Self::new() }
    }

    /// The data for the policy of `limit`, made from its name if there is none yet.
    #[inline]
    pub(crate) fn of(&self, limit: &Limit, make: impl Fn(&str) -> T) -> &Policy<T> {
        // Limits of one identity have one name, unless they are shown under another than that of their row. Comparing all
        // their numbers took 146 instructions for each request.
        let same = self
            .iter()
            .find(|policy| policy.limit.id() == limit.id() && policy.limit.is_named_like(limit));
        same.unwrap_or_else(|| self.by_name(limit, make))
    }

    #[inline(never)]
    fn by_name(&self, limit: &Limit, make: impl Fn(&str) -> T) -> &Policy<T> {
        let mut line = Line::new();
        write!(line, "{}", limit.name()).expect("a line takes everything");
        let new =
            |name: &str| Box::new(Policy { limit: *limit, name: name.into(), kept: make(name) });
        let (others, slots) = self.slots.split_last().expect("there is one for all others");
        for slot in slots {
            let is_new = slot.get().is_none();
            if is_new && self.names.is_some_and(|names| !names.admit(line.as_str())) {
                break;
            }
            // Another thread may fill the slot meanwhile, with the same policy or another one.
            let policy = slot.get_or_init(|| new(line.as_str()));
            if *policy.name == *line.as_str() {
                return policy;
            }
        }
        others.get_or_init(|| new(OTHERS))
    }

    /// All that there are.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Policy<T>> {
        let (others, slots) = self.slots.split_last().expect("there is one for all others");
        let filled = slots.iter().map_while(|slot| slot.get().map(|policy| &**policy));
        // Not behind empty slots: most lists have one policy, and every request looks it up.
        filled.chain(others.get().map(|policy| &**policy))
    }
}

impl<T> fmt::Debug for ByPolicy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|policy| &policy.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;
    use std::sync::mpsc::channel;
    use std::thread::spawn;
    use std::time::Duration;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn name(by_policy: &ByPolicy<String>, limit: Limit) -> String {
        let policy = by_policy.of(&limit, str::to_owned);
        assert_eq!(*policy.name, *policy.kept);
        policy.kept.clone()
    }

    fn names(by_policy: &ByPolicy<String>) -> Vec<&str> {
        by_policy.iter().map(|policy| &*policy.name).collect()
    }

    #[test]
    fn limits_of_one_name_are_one_policy() {
        let by_policy = ByPolicy::new();
        assert_eq!(name(&by_policy, Limit::per_minute(5).named("api")), "api");
        assert_eq!(name(&by_policy, Limit::per_minute(9).named("api")), "api");
        assert_eq!(name(&by_policy, Limit::per_minute(9)), "9/minute");
        assert_eq!(name(&by_policy, Limit::per_minute(9)), "9/minute");
        assert_eq!(names(&by_policy), ["api", "9/minute"]);
    }

    /// As after a reload that renames a limit and keeps its row.
    #[test]
    fn a_limit_of_the_same_row_is_found_by_the_name_that_it_has_now() {
        let by_policy = ByPolicy::new();
        let counted = |limit: Limit| limit.counted_as("row");
        let [old, new] = ["old", "new"].map(|name| counted(Limit::per_minute(5).named(name)));
        assert_eq!(old.id(), new.id());
        for limit in [old, new, old] {
            assert_eq!(name(&by_policy, limit), limit.name().to_string());
        }
        assert_eq!(names(&by_policy), ["old", "new"]);
        let [few, many] = [5, 9].map(|count| counted(Limit::sliding_log(count, MINUTE)));
        assert_eq!(few.id(), many.id());
        for limit in [few, many, few] {
            assert_eq!(name(&by_policy, limit), limit.name().to_string());
        }
    }

    #[test]
    fn policies_of_all_layers_of_a_process_are_bounded_together() {
        static NAMES: Names = Names::new();
        let (one, other) = (ByPolicy::within(&NAMES), ByPolicy::within(&NAMES));
        for count in 1..=MOST as u64 {
            let layer = if count % 2 == 0 { &one } else { &other };
            assert_eq!(name(layer, Limit::per_minute(count)), format!("{count}/minute"));
        }
        assert_eq!(name(&one, Limit::per_hour(1)), OTHERS);
        assert_eq!(name(&other, Limit::per_hour(1)), OTHERS);
        assert_eq!(name(&other, Limit::per_minute(2)), "2/minute");
        let labels: BTreeSet<_> = names(&one).into_iter().chain(names(&other)).collect();
        assert_eq!(labels.len(), MOST + 1);
    }

    #[test]
    fn policies_beyond_the_bound_are_found_without_a_lock() {
        static NAMES: Names = Names::new();
        static LAYER: LazyLock<ByPolicy<String>> = LazyLock::new(|| ByPolicy::within(&NAMES));
        let other = ByPolicy::within(&NAMES);
        for count in 1..=MOST as u64 {
            name(&other, Limit::per_minute(count));
        }
        assert_eq!(name(&LAYER, Limit::per_hour(1)), OTHERS);
        let _locked = NAMES.growing.lock();
        let (told, found) = channel();
        spawn(move || told.send(name(&LAYER, Limit::per_hour(2))));
        assert_eq!(found.recv_timeout(Duration::from_secs(60)).as_deref(), Ok(OTHERS));
    }

    #[test]
    fn policies_are_bounded_and_the_rest_is_one_more() {
        let by_policy = ByPolicy::new();
        for count in 1..=MOST as u64 {
            assert_eq!(name(&by_policy, Limit::per_minute(count)), format!("{count}/minute"));
        }
        assert_eq!(name(&by_policy, Limit::per_hour(1)), OTHERS);
        assert_eq!(name(&by_policy, Limit::per_hour(2)), OTHERS);
        assert_eq!(name(&by_policy, Limit::per_minute(7)), "7/minute");
        assert_eq!(names(&by_policy).len(), MOST + 1);
    }
}
