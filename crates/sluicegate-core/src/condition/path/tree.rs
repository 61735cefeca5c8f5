use std::collections::HashMap;

use super::{PathMatches, Segment};
use crate::key::path::steps::step;

/// Patterns of paths by their segments. Each pattern has a number.
///
/// A search looks up each segment once, however many patterns there are. It follows two branches only where one
/// pattern has a text and another has a `{name}`.
#[derive(Debug, Clone, Default)]
pub(in crate::condition) struct Tree {
    /// The patterns that end here.
    ends: Vec<u32>,
    /// The patterns that end here with `*`.
    rest: Vec<u32>,
    texts: HashMap<Box<[u8]>, Self>,
    any: Option<Box<Self>>,
}

/// The most segments by which a pattern is found. It bounds how deep the tree is searched and dropped.
const DEEPEST: usize = 16;

impl Tree {
    pub(in crate::condition) fn add(&mut self, pattern: &PathMatches, number: u32) {
        let mut node = self;
        for segment in pattern.segments.iter().take(DEEPEST) {
            node = match segment {
                Segment::Any => node.any.get_or_insert_default(),
                Segment::Text(text) => node.texts.entry(text.as_slice().into()).or_default(),
            };
        }
        let goes_on = pattern.rest || pattern.segments.len() > DEEPEST;
        let numbers = if goes_on { &mut node.rest } else { &mut node.ends };
        numbers.push(number);
    }

    /// Adds the numbers of the patterns that match these segments to `found`, in no particular order.
    ///
    /// A pattern of more than [`DEEPEST`] segments is found by its first ones.
    pub(in crate::condition) fn find(&self, segments: &[&[u8]], found: &mut impl Extend<u32>) {
        step(1);
        found.extend(self.rest.iter().copied());
        let Some((first, behind)) = segments.split_first() else {
            found.extend(self.ends.iter().copied());
            return;
        };
        if !self.texts.is_empty() {
            step(first.len());
            if let Some(node) = self.texts.get(*first) {
                node.find(behind, found);
            }
        }
        if let Some(node) = &self.any {
            node.find(behind, found);
        }
    }
}
