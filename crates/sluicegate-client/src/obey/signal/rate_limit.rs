use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use foldhash::fast::FixedState;
use http::{HeaderMap, HeaderName};
use sfv::visitor::{
    EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor, ParameterVisitor,
};
use sfv::{BareItemFromInput, KeyRef, Parser};
use smallvec::SmallVec;

use super::{MAX_QUOTAS, Quota};

static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Reads `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-11). False if there is no `RateLimit`
/// field that can be read.
pub(super) fn read(headers: &HeaderMap, quotas: &mut SmallVec<[Quota; 2]>) -> bool {
    let Some(standings) = items(headers, &RATE_LIMIT).filter(|items| !items.is_empty()) else {
        return false;
    };
    let policies = items(headers, &RATE_LIMIT_POLICY).unwrap_or_default();
    for item in standings {
        // An item without `r` says nothing.
        let Some(remaining) = item.remaining else { continue };
        let policy = policies.iter().find(|policy| policy.id == item.id && policy.limit.is_some());
        quotas.push(Quota {
            policy: item.id,
            limit: policy.and_then(|policy| policy.limit),
            window: policy.and_then(|policy| policy.window).map(Duration::from_secs),
            remaining,
            reset: item.reset.map(Duration::from_secs),
            counts_requests: policy.is_none_or(|policy| policy.counts_requests),
        });
    }
    // Places are given back when responses end: neither spreading nor waiting for a reset is right for them.
    quotas.retain(|quota| {
        !policies.iter().any(|policy| policy.id == quota.policy && policy.counts_places)
    });
    true
}

/// The items of a field of either name.
#[derive(Debug, Clone, Copy)]
struct Item {
    id: u64,
    remaining: Option<u64>,
    reset: Option<u64>,
    limit: Option<u64>,
    window: Option<u64>,
    counts_requests: bool,
    counts_places: bool,
}

/// The field's items over all its lines; `None` if one line is malformed, which makes the field malformed.
fn items(headers: &HeaderMap, name: &HeaderName) -> Option<SmallVec<[Item; 2]>> {
    let mut items = Items::default();
    for line in headers.get_all(name) {
        Parser::new(line.as_bytes()).parse_list_with_visitor(&mut items).ok()?;
    }
    Some(items.0)
}

#[derive(Default)]
struct Items(SmallVec<[Item; 2]>);

impl<'de> ListVisitor<'de> for &mut Items {
    type Out = ();
    type Error = Malformed;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, Malformed> {
        Ok(Entry(self))
    }

    fn finish(self) -> Result<(), Malformed> {
        Ok(())
    }
}

struct Entry<'a>(&'a mut Items);

impl<'de> EntryVisitor<'de> for Entry<'_> {
    type Error = Malformed;

    fn item(self) -> Result<impl ItemVisitor<'de>, Malformed> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Malformed> {
        Err::<Ignored, _>(Malformed)
    }
}

impl<'de> ItemVisitor<'de> for Entry<'_> {
    type Out = ();
    type Error = Malformed;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, Malformed> {
        let BareItemFromInput::String(name) = item else { return Err(Malformed) };
        let mut hasher = FixedState::default().build_hasher();
        hasher.write(name.as_str().as_bytes());
        let item = Item {
            id: 0,
            remaining: None,
            reset: None,
            limit: None,
            window: None,
            counts_requests: true,
            counts_places: false,
        };
        Ok(Parameters { items: self.0, item, hasher, key: 0 })
    }
}

struct Parameters<'a, H> {
    items: &'a mut Items,
    item: Item,
    hasher: H,
    /// The hash of the partition key.
    key: u64,
}

impl<'de, H: Hasher> ParameterVisitor<'de> for Parameters<'_, H> {
    type Out = ();
    type Error = Malformed;

    fn parameter(
        &mut self,
        key: &'de KeyRef,
        value: BareItemFromInput<'de>,
    ) -> Result<(), Malformed> {
        match key.as_str() {
            "r" => self.item.remaining = Some(number(&value)?),
            "t" => self.item.reset = Some(number(&value)?),
            "q" => self.item.limit = Some(number(&value)?),
            "w" => self.item.window = Some(number(&value)?).filter(|window| *window > 0),
            "qu" => {
                let BareItemFromInput::String(unit) = value else { return Err(Malformed) };
                self.item.counts_requests = unit.as_str() == "requests";
                self.item.counts_places = unit.as_str() == "concurrent-requests";
            }
            "pk" => {
                let BareItemFromInput::ByteSequence(bytes) = value else { return Err(Malformed) };
                let mut hasher = FixedState::default().build_hasher();
                hasher.write(&bytes);
                self.key = hasher.finish();
            }
            // Unknown parameters are ignored.
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), Malformed> {
        self.hasher.write_u64(self.key);
        self.item.id = self.hasher.finish();
        if self.items.0.len() < MAX_QUOTAS {
            self.items.0.push(self.item);
        }
        Ok(())
    }
}

fn number(value: &BareItemFromInput<'_>) -> Result<u64, Malformed> {
    let BareItemFromInput::Integer(number) = value else { return Err(Malformed) };
    u64::try_from(i64::from(*number)).map_err(|_| Malformed)
}

/// The error carries no reason, because nothing reads it.
#[derive(Debug)]
struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a RateLimit field")
    }
}

impl Error for Malformed {}
