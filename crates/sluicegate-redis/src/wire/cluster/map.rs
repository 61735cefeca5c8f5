//! Which node serves which slot.

use std::sync::Arc;

use redis::Value;

use crate::wire::node::Node;

/// How many slots a cluster has.
const SLOTS: usize = 16_384;

/// Which node serves which slot.
#[derive(Debug, Clone)]
pub(crate) struct Map {
    /// For each slot, the index in `nodes` plus one; zero if no node serves it.
    slots: Box<[u16]>,
    nodes: Vec<Arc<Node>>,
}

/// The slots from `first` to `last`, and the node that serves them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    /// `None` if the server means the host under which it was asked.
    pub(super) host: Option<String>,
    pub(super) port: u16,
}

impl Map {
    pub(super) fn new(ranges: &[Range], mut node_at: impl FnMut(&Range) -> Arc<Node>) -> Self {
        let mut map = Self { slots: vec![0; SLOTS].into(), nodes: Vec::new() };
        for range in ranges {
            let index = map.index_of(&node_at(range));
            let (first, last) = (usize::from(range.first), usize::from(range.last));
            map.slots[first..=last].fill(index);
        }
        map
    }

    pub(super) fn node(&self, slot: u16) -> Option<&Arc<Node>> {
        let index = self.slots[usize::from(slot)].checked_sub(1)?;
        self.nodes.get(usize::from(index))
    }

    pub(super) fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    /// Nodes that served a slot in the map `before` that another node serves now.
    pub(super) fn replaced<'m>(&'m self, before: &'m Self) -> impl Iterator<Item = &'m Arc<Node>> {
        before.nodes.iter().filter(|node| {
            let index = before.nodes.iter().position(|known| Arc::ptr_eq(known, node));
            let index = index.map_or(0, |index| index + 1);
            let mut slots = (0..SLOTS as u16)
                .filter(|slot| usize::from(before.slots[usize::from(*slot)]) == index);
            slots.any(|slot| !self.node(slot).is_some_and(|now| Arc::ptr_eq(now, node)))
        })
    }

    /// The map with one slot moved to `node`.
    pub(super) fn with(&self, slot: u16, node: &Arc<Node>) -> Self {
        let mut map = self.clone();
        map.slots[usize::from(slot)] = map.index_of(node);
        map
    }

    fn index_of(&mut self, node: &Arc<Node>) -> u16 {
        let known = self.nodes.iter().position(|known| Arc::ptr_eq(known, node));
        let index = known.unwrap_or_else(|| {
            self.nodes.push(Arc::clone(node));
            self.nodes.len() - 1
        });
        // A cluster has no more masters than slots.
        u16::try_from(index + 1).unwrap_or(0)
    }
}

/// Reads the answer to `CLUSTER SLOTS`; `None` if it is not valid.
pub(super) fn parse(answer: &Value) -> Option<Vec<Range>> {
    let Value::Array(ranges) = answer else { return None };
    ranges.iter().map(range).collect()
}

fn range(value: &Value) -> Option<Range> {
    let Value::Array(parts) = value else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = &parts[..] else {
        return None;
    };
    let [host, Value::Int(port), ..] = &master[..] else { return None };
    let slot = |slot: &i64| u16::try_from(*slot).ok().filter(|slot| usize::from(*slot) < SLOTS);
    let (first, last) = (slot(first)?, slot(last)?);
    let host = match host {
        Value::BulkString(host) if !host.is_empty() && host != b"?" => {
            Some(String::from_utf8(host.clone()).ok()?)
        }
        Value::SimpleString(host) => Some(host.clone()),
        _ => None,
    };
    (first <= last).then_some(Range { first, last, host, port: u16::try_from(*port).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn slots(first: i64, last: i64, host: Value, port: i64) -> Value {
        let master = Value::Array(vec![host, Value::Int(port), text("id"), Value::Array(vec![])]);
        let replica = Value::Array(vec![text("10.0.0.9"), Value::Int(1), text("other")]);
        Value::Array(vec![Value::Int(first), Value::Int(last), master, replica])
    }

    #[test]
    fn the_master_of_each_range_serves_it() {
        let answer = Value::Array(vec![
            slots(0, 5_460, text("10.0.0.1"), 7_000),
            slots(5_461, 16_383, text("10.0.0.2"), 7_001),
        ]);
        let ranges = parse(&answer).expect("an answer");
        assert_eq!(ranges.len(), 2);
        let host = Some("10.0.0.2".to_owned());
        assert_eq!(ranges[1], Range { first: 5_461, last: 16_383, host, port: 7_001 });
    }

    #[test]
    fn a_server_without_a_host_is_the_one_that_was_asked() {
        for host in [Value::Nil, text(""), text("?")] {
            let answer = Value::Array(vec![slots(0, 16_383, host, 7_000)]);
            assert_eq!(parse(&answer).expect("an answer")[0].host, None);
        }
    }

    #[test]
    fn an_invalid_answer_is_rejected() {
        let beyond = slots(0, 16_384, text("10.0.0.1"), 7_000);
        let backwards = slots(9, 8, text("10.0.0.1"), 7_000);
        let port = slots(0, 9, text("10.0.0.1"), 70_000);
        for wrong in [beyond, backwards, port, Value::Int(1), Value::Array(vec![])] {
            assert_eq!(parse(&Value::Array(vec![wrong])), None);
        }
        assert_eq!(parse(&Value::Okay), None);
    }
}
