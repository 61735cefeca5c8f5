//! The conditions that may hold for a request, among many.
//!
//! A service with a hundred thousand rules names a different path or host in nearly each of them. Asking one condition
//! after the other takes time for each rule. The index is a table by host with a tree of path segments for each, so a
//! request asks only the conditions that name its host and its path, and those that name neither.
//!
//! The index never decides. It leaves out conditions that cannot hold, and those that it finds are still asked.

use std::collections::HashMap;
use std::ops::Range;

use smallvec::SmallVec;

use super::HostIs;
use super::host::canonical;
use super::path::{PathMatches, Tree, each_way_to_read};
use crate::key::{Missing, View, host_of};

/// What a request must show so that a condition can hold: a host, a path, both, or neither.
#[derive(Debug, Clone, Copy, Default)]
pub struct Target<'a> {
    /// The host of the request.
    pub host: Option<&'a HostIs>,
    /// The path of the request.
    pub path: Option<&'a PathMatches>,
}

/// Finds the conditions of a list that may hold for a request, by the hosts and paths that they name.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// How many conditions there are.
    count: u32,
    /// The conditions that name neither a host nor a path, in order.
    always: Vec<u32>,
    paths: Tree,
    names_path: bool,
    hosts: HashMap<Box<str>, AtHost>,
    /// By the name that the hosts are below of.
    below: HashMap<Box<str>, AtHost>,
}

/// The conditions that name one host.
#[derive(Debug, Clone, Default)]
struct AtHost {
    /// Those that name no path.
    always: Vec<u32>,
    paths: Tree,
}

impl Index {
    /// Adds the next condition of the list. It can hold only for requests that show one of `targets`.
    pub fn add(&mut self, targets: &[Target<'_>]) {
        let number = self.count;
        self.count += 1;
        if targets.iter().any(|target| target.host.is_none() && target.path.is_none()) {
            self.always.push(number);
            return;
        }
        for Target { host, path } in targets {
            let (always, paths) = match host {
                Some(host) => {
                    let hosts = if host.is_pattern() { &mut self.below } else { &mut self.hosts };
                    let at = hosts.entry(host.canonical_name()).or_default();
                    (&mut at.always, &mut at.paths)
                }
                None => (&mut self.always, &mut self.paths),
            };
            match path {
                Some(path) => {
                    self.names_path = true;
                    paths.add(path, number);
                }
                None => always.push(number),
            }
        }
    }

    /// The indices of the conditions that may hold, in the order of the list.
    ///
    /// These are all of them if the host or the path of the request cannot be read. Then the first condition that
    /// needs it says what is wrong.
    pub fn candidates<V: View>(&self, view: &V) -> impl Iterator<Item = usize> {
        let (all, always, found) = match self.find(view) {
            Ok(found) => (0..0, self.always.as_slice(), found),
            Err(Unreadable) => (0..self.count, [].as_slice(), Numbers::new()),
        };
        Candidates { all, always, found: found.into_iter().peekable() }
            .map(|number| number as usize)
    }

    /// The conditions that name the host or the path of the request, sorted.
    fn find<V: View>(&self, view: &V) -> Result<Numbers, Unreadable> {
        let mut trees = SmallVec::<[&Tree; 4]>::new();
        let mut found = Numbers::new();
        trees.push(&self.paths);
        if !self.hosts.is_empty() || !self.below.is_empty() {
            let host = host_of(view)?.unwrap_or_default();
            for at in self.at_host(&canonical(host)) {
                found.extend_from_slice(&at.always);
                trees.push(&at.paths);
            }
        }
        if self.names_path {
            each_way_to_read(view, |segments| {
                trees.iter().for_each(|tree| tree.find(segments, &mut found));
            })?
            .ok_or(Unreadable)?;
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn at_host(&self, host: &str) -> impl Iterator<Item = &AtHost> {
        let dots = host.bytes().enumerate().skip(1).filter(|(_, byte)| *byte == b'.');
        let behind = dots.map(|(dot, _)| &host[dot + 1..]);
        let below =
            behind.filter(|_| !self.below.is_empty()).filter_map(|name| self.below.get(name));
        self.hosts.get(host).into_iter().chain(below)
    }
}

type Numbers = SmallVec<[u32; 16]>;

/// The host or the path of the request cannot be read.
struct Unreadable;

impl From<Missing> for Unreadable {
    fn from(_: Missing) -> Self {
        Self
    }
}

/// Merges two sorted lists without a common number, or counts.
struct Candidates<'a> {
    all: Range<u32>,
    always: &'a [u32],
    found: std::iter::Peekable<smallvec::IntoIter<[u32; 16]>>,
}

impl Iterator for Candidates<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match (self.always.split_first(), self.found.peek()) {
            (Some((first, _)), Some(found)) if found < first => self.found.next(),
            (Some((first, behind)), _) => {
                self.always = behind;
                Some(*first)
            }
            (None, Some(_)) => self.found.next(),
            (None, None) => self.all.next(),
        }
    }
}

#[cfg(test)]
mod tests;
