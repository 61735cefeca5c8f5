use sluicegate_core::adapter::{Index, Target};
use sluicegate_core::condition::AnyOf;

use super::{Condition, Test};

/// The most combinations of a host and a path by which one condition is found. With more, its paths are enough.
const MOST_COMBINATIONS: usize = 64;

/// Adds a condition to `index`. Without one, all requests are meant.
pub(in crate::compile) fn add_to(index: &mut Index, condition: Option<&Condition>) {
    match condition {
        Some(condition) => index.add(&condition.targets()),
        None => index.add(&[Target::default()]),
    }
}

impl Condition {
    /// The hosts and paths for which it can hold.
    fn targets(&self) -> Vec<Target<'_>> {
        let hosts = self.0.iter().find_map(|test| match test {
            Test::Host(AnyOf(hosts)) => Some(hosts.as_slice()),
            _ => None,
        });
        let paths = self.0.iter().find_map(|test| match test {
            Test::Path(AnyOf(paths)) => Some(paths.as_slice()),
            _ => None,
        });
        let at_host = |host| Target { host: Some(host), path: None };
        let at_path = |path| Target { host: None, path: Some(path) };
        match (hosts, paths) {
            (Some(hosts), Some(paths)) if hosts.len() * paths.len() <= MOST_COMBINATIONS => {
                let at_both = |host| {
                    paths.iter().map(move |path| Target { path: Some(path), ..at_host(host) })
                };
                hosts.iter().flat_map(at_both).collect()
            }
            (_, Some(paths)) => paths.iter().map(at_path).collect(),
            (Some(hosts), None) => hosts.iter().map(at_host).collect(),
            (None, None) => match self.only_any() {
                Some(any) => any.iter().flat_map(Self::targets).collect(),
                None => vec![Target::default()],
            },
        }
    }

    /// The conditions of which one has to hold, if nothing that comes before them can fail.
    fn only_any(&self) -> Option<&[Self]> {
        match self.0.as_slice() {
            [Test::Any(AnyOf(any))] | [Test::Method(_), Test::Any(AnyOf(any))] => Some(any),
            _ => None,
        }
    }
}
