use std::hash::BuildHasher;
use std::time::Duration;

use foldhash::fast::FixedState;
use http::{HeaderMap, HeaderName};
use sfv::{BareItem, List, ListEntry, Parser};
use smallvec::SmallVec;

use super::Quota;

static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Most quotas that are read from one response. Servers announce one or two, three at most.
pub const MAX_QUOTAS: usize = 8;

/// An item of a field of either name.
struct Item {
    /// A hash of the policy's name and the partition key.
    id: u64,
    remaining: Option<u64>,
    reset: Option<u64>,
    limit: Option<u64>,
    window: Option<u64>,
    counts_requests: bool,
    counts_places: bool,
}

/// Reads `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-11). False if there is no `RateLimit`
/// field that can be read.
pub(super) fn read(headers: &HeaderMap, quotas: &mut SmallVec<[Quota; 2]>) -> bool {
    let standings = items(headers, &RATE_LIMIT);
    if standings.is_empty() {
        return false;
    }
    let policies = items(headers, &RATE_LIMIT_POLICY);
    for item in &standings {
        // An item without `r` says nothing.
        let Some(remaining) = item.remaining else { continue };
        let of_item = || policies.iter().filter(|policy| policy.id == item.id);
        // Places are given back when responses end: neither spreading nor waiting for a reset is right for them.
        if of_item().any(|policy| policy.counts_places) {
            continue;
        }
        let policy = of_item().find(|policy| policy.limit.is_some());
        quotas.push(Quota {
            policy: item.id,
            limit: policy.and_then(|policy| policy.limit),
            window: policy.and_then(|policy| policy.window).map(Duration::from_secs),
            remaining,
            reset: item.reset.map(Duration::from_secs),
            counts_requests: policy.is_none_or(|policy| policy.counts_requests),
        });
    }
    true
}

/// The items of a field over all its lines, at most [`MAX_QUOTAS`]. None if one line is malformed, which makes the field
/// malformed.
fn items(headers: &HeaderMap, name: &HeaderName) -> Vec<Item> {
    let mut items = Vec::new();
    let lines = headers.get_all(name).iter();
    let is_read =
        lines.map(|line| read_line(line.as_bytes(), &mut items)).all(|read| read.is_some());
    if is_read { items } else { Vec::new() }
}

/// Reads a line as a list of Structured Fields (RFC 9651). `None` if it is malformed. Unknown parameters are ignored.
fn read_line(line: &[u8], items: &mut Vec<Item>) -> Option<()> {
    for entry in Parser::new(line).parse::<List>().ok()? {
        let ListEntry::Item(sfv::Item { bare_item, params }) = entry else { return None };
        let number = |key: &str| match params.get(key) {
            Some(value) => u64::try_from(i64::from(value.as_integer()?)).ok().map(Some),
            None => Some(None),
        };
        let unit = match params.get("qu") {
            Some(unit) => unit.as_string()?.as_str(),
            None => "requests",
        };
        let partition = match params.get("pk") {
            Some(key) => Some(BareItem::as_byte_sequence(key)?),
            None => None,
        };
        let item = Item {
            id: FixedState::default().hash_one((bare_item.as_string()?.as_str(), partition)),
            remaining: number("r")?,
            reset: number("t")?,
            limit: number("q")?,
            window: number("w")?.filter(|window| *window > 0),
            counts_requests: unit == "requests",
            counts_places: unit == "concurrent-requests",
        };
        if items.len() < MAX_QUOTAS {
            items.push(item);
        }
    }
    Some(())
}
