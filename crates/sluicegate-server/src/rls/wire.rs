//! Reads a message of the protocol without copying its texts, as bytes.
//!
//! Envoy copies the header fields of clients into its messages, and those need not be UTF-8. A request has a handful of texts,
//! each of which would be an allocation of its own. What is read here is otherwise what prost reads by Envoy's definitions:
//! a test compares the two.

use std::borrow::Cow;
use std::fmt;

use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use sluicegate_core::adapter::step;

/// A request as the protocol has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Message<'m> {
    pub(super) domain: &'m [u8],
    pub(super) descriptors: Vec<MessageDescriptor<'m>>,
    pub(super) hits: u32,
}

/// A descriptor as the protocol has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MessageDescriptor<'m> {
    pub(super) entries: Vec<(&'m [u8], &'m [u8])>,
    /// How much in which unit.
    pub(super) limit: Option<(u32, i32)>,
    pub(super) hits: Option<u64>,
    pub(super) is_negative: bool,
}

/// Bytes that are not a message.
#[derive(Debug)]
pub(super) struct Malformed(Cow<'static, str>);

impl<'m> Message<'m> {
    /// Reads a message.
    pub(super) fn read(bytes: &'m [u8]) -> Result<Self, Malformed> {
        let mut message = Self::default();
        each_field(bytes, |tag, field| {
            match tag {
                1 => message.domain = field.bytes()?,
                2 => message.descriptors.push(descriptor(field.bytes()?)?),
                3 => message.hits = field.number()? as u32,
                _ => field.skip(tag)?,
            }
            Ok(())
        })?;
        Ok(message)
    }
}

fn descriptor(bytes: &[u8]) -> Result<MessageDescriptor<'_>, Malformed> {
    let mut read = MessageDescriptor::default();
    each_field(bytes, |tag, field| {
        match tag {
            1 => read.entries.push(entry(field.bytes()?)?),
            // A part that comes twice is merged.
            2 => limit(field.bytes()?, read.limit.get_or_insert_default())?,
            3 => value(field.bytes()?, read.hits.get_or_insert_default())?,
            4 => read.is_negative = field.number()? != 0,
            _ => field.skip(tag)?,
        }
        Ok(())
    })?;
    Ok(read)
}

fn entry(bytes: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let (mut key, mut value) = (&b""[..], &b""[..]);
    each_field(bytes, |tag, field| {
        match tag {
            1 => key = field.bytes()?,
            2 => value = field.bytes()?,
            _ => field.skip(tag)?,
        }
        Ok(())
    })?;
    Ok((key, value))
}

fn limit(bytes: &[u8], (count, unit): &mut (u32, i32)) -> Result<(), Malformed> {
    each_field(bytes, |tag, field| {
        match tag {
            1 => *count = field.number()? as u32,
            2 => *unit = field.number()? as i32,
            _ => field.skip(tag)?,
        }
        Ok(())
    })
}

/// A number in a message of its own.
fn value(bytes: &[u8], value: &mut u64) -> Result<(), Malformed> {
    each_field(bytes, |tag, field| {
        match tag {
            1 => *value = field.number()?,
            _ => field.skip(tag)?,
        }
        Ok(())
    })
}

/// A field whose tag has been read, and everything behind it.
struct Field<'f, 'm> {
    kind: WireType,
    rest: &'f mut &'m [u8],
}

fn each_field<'m>(
    mut rest: &'m [u8],
    mut each: impl FnMut(u32, Field<'_, 'm>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    while !rest.is_empty() {
        // A field costs at least two bytes, so the steps are within the length of the message, whatever it contains.
        // Levels are fixed by the protocol: nothing here recurses by what a client sends, except `skip_field`, which
        // has a bound of its own.
        step(1);
        let (tag, kind) = decode_key(&mut rest)?;
        each(tag, Field { kind, rest: &mut rest })?;
    }
    Ok(())
}

impl<'m> Field<'_, 'm> {
    fn number(self) -> Result<u64, Malformed> {
        self.is(WireType::Varint)?;
        Ok(decode_varint(self.rest)?)
    }

    fn bytes(self) -> Result<&'m [u8], Malformed> {
        self.is(WireType::LengthDelimited)?;
        // The length is what the sender says. It is compared with what is there before anything is done with it: no
        // allocation follows it.
        let length = usize::try_from(decode_varint(self.rest)?).unwrap_or(usize::MAX);
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Malformed(Cow::Borrowed("a field is longer than its message")))?;
        *self.rest = rest;
        Ok(bytes)
    }

    /// A field of a newer protocol.
    fn skip(self, tag: u32) -> Result<(), Malformed> {
        Ok(skip_field(self.kind, tag, self.rest, DecodeContext::default())?)
    }

    fn is(&self, expected: WireType) -> Result<(), Malformed> {
        if self.kind == expected {
            return Ok(());
        }
        Err(Malformed(Cow::Borrowed("a field has another type than in the protocol")))
    }
}

impl From<DecodeError> for Malformed {
    fn from(error: DecodeError) -> Self {
        Self(Cow::Owned(error.to_string()))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
    use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
        Entry, RateLimitOverride,
    };
    use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
    use envoy_types::pb::google::protobuf::UInt64Value;
    use prost::Message as _;

    use super::*;

    fn whole() -> RateLimitRequest {
        let entry = |key: &str, value: &str| Entry { key: key.into(), value: value.into() };
        let full = RateLimitDescriptor {
            entries: vec![entry("user", "żółw"), entry("path", ""), entry("", "x")],
            limit: Some(RateLimitOverride { requests_per_unit: u32::MAX, unit: 3 }),
            hits_addend: Some(UInt64Value { value: u64::MAX }),
            is_negative_hits: true,
        };
        let plain = RateLimitDescriptor {
            entries: vec![entry("a", "b")],
            ..RateLimitDescriptor::default()
        };
        RateLimitRequest {
            domain: "edge".into(),
            descriptors: vec![full, RateLimitDescriptor::default(), plain],
            hits_addend: 7,
        }
    }

    /// What prost decoded.
    fn of(message: &RateLimitRequest) -> Message<'_> {
        let descriptors = message.descriptors.iter().map(|descriptor| MessageDescriptor {
            entries: descriptor
                .entries
                .iter()
                .map(|entry| (entry.key.as_bytes(), entry.value.as_bytes()))
                .collect(),
            limit: descriptor.limit.as_ref().map(|limit| (limit.requests_per_unit, limit.unit)),
            hits: descriptor.hits_addend.as_ref().map(|hits| hits.value),
            is_negative: descriptor.is_negative_hits,
        });
        Message {
            domain: message.domain.as_bytes(),
            descriptors: descriptors.collect(),
            hits: message.hits_addend,
        }
    }

    /// Whether both read it. Only this reads texts that are not UTF-8.
    fn agree(bytes: &[u8]) -> bool {
        let theirs = RateLimitRequest::decode(bytes);
        let ours = Message::read(bytes);
        match (&theirs, &ours) {
            (Ok(theirs), Ok(ours)) => assert_eq!(*ours, of(theirs), "{bytes:?}"),
            (Err(_), Err(_)) => {}
            // prost refuses bytes that are no text, also in a field that comes again later.
            (Err(error), Ok(_)) => {
                assert!(error.to_string().contains("UTF-8"), "{bytes:?}: {error}");
            }
            _ => panic!("{bytes:?}: prost reads {theirs:?}, and this {ours:?}"),
        }
        theirs.is_ok()
    }

    #[test]
    fn a_text_may_be_any_bytes() {
        let message = [0x12, 9, 0x0a, 7, 0x0a, 1, b'k', 0x12, 2, 0xff, 0];
        let read = Message::read(&message).unwrap();
        assert_eq!(read.descriptors[0].entries, [(&b"k"[..], &[0xff, 0][..])]);
    }

    #[test]
    fn a_message_is_read_as_prost_reads_it() {
        assert!(agree(&whole().encode_to_vec()));
        assert!(agree(&[]));
    }

    #[test]
    fn parts_that_come_twice_and_fields_of_a_newer_protocol_are_read_as_prost_reads_them() {
        let whole = whole().encode_to_vec();
        assert!(agree(&[&*whole, &whole].concat()), "lists are longer, and the rest is the last");
        let limit_twice = [0x12, 10, 0x12, 2, 0x08, 5, 0x12, 4, 0x10, 3, 0x48, 9];
        assert!(agree(&limit_twice));
        let unknown = [0x7a, 2, b'h', b'i', 0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7d, 1, 2, 3, 4];
        assert!(agree(&[&unknown[..], &whole].concat()));
        let group = [0x7b, 0x08, 1, 0x7c];
        assert!(agree(&[&group[..], &whole].concat()));
    }

    #[test]
    fn a_damaged_message_is_read_as_prost_reads_it_or_refused_as_by_prost() {
        let whole = whole().encode_to_vec();
        let (mut read, mut refused) = (0, 0);
        let mut tell = |bytes: &[u8]| match agree(bytes) {
            true => read += 1,
            false => refused += 1,
        };
        for at in 0..whole.len() {
            tell(&whole[..at]);
            for byte in 0..=u8::MAX {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                tell(&damaged);
            }
        }
        assert!(read > 1_000 && refused > 1_000, "{read} read, {refused} refused");
    }
}
