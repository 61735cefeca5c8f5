use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use sfv::visitor::{
    EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor, ParameterVisitor,
};
use sfv::{BareItemFromInput, KeyRef, Parser};

use super::item::{Item, Items};

/// Reads a line of a list as a structured field (RFC 9651). False if it is malformed.
pub(super) fn read(line: &[u8], items: &mut Items) -> bool {
    Parser::new(line).parse_list_with_visitor(List(items)).is_ok()
}

struct List<'a>(&'a mut Items);

impl<'de> ListVisitor<'de> for List<'_> {
    type Out = ();
    type Error = Malformed;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, Malformed> {
        Ok(Entry(self.0))
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
        Ok(Parameters { items: self.0, item: Item::new(), name: name.into_owned().into(), key: 0 })
    }
}

struct Parameters<'a> {
    items: &'a mut Items,
    item: Item,
    name: String,
    /// The hash of the partition key.
    key: u64,
}

impl<'de> ParameterVisitor<'de> for Parameters<'_> {
    type Out = ();
    type Error = Malformed;

    fn parameter(
        &mut self,
        key: &'de KeyRef,
        value: BareItemFromInput<'de>,
    ) -> Result<(), Malformed> {
        match (key.as_str(), value) {
            (key @ ("r" | "t" | "q" | "w"), BareItemFromInput::Integer(number)) => {
                let number = u64::try_from(i64::from(number)).map_err(|_| Malformed)?;
                self.item.set_number(key, number);
            }
            ("qu", BareItemFromInput::String(unit)) => self.item.set_unit(unit.as_str()),
            ("pk", BareItemFromInput::ByteSequence(bytes)) => {
                let mut hasher = FixedState::default().build_hasher();
                hasher.write(&bytes);
                self.key = hasher.finish();
            }
            ("r" | "t" | "q" | "w" | "qu" | "pk", _) => return Err(Malformed),
            // Unknown parameters are ignored.
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Malformed> {
        self.item.add_to(self.items, self.name.as_bytes(), self.key);
        Ok(())
    }
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
