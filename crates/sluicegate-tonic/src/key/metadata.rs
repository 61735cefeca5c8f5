use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use sluicegate::Header;
use sluicegate::adapter::KeyTag;

use super::{Key, KeyBuf, Missing, View};

/// One value of a call's metadata: `Metadata("x-tenant")`.
///
/// Text is the same key as [`Header`] of the same name, so that gRPC and other clients can share a budget. If the name
/// ends in `-bin`, the value is decoded: base64 with padding and without is one key.
///
/// As with [`Header`], a value that is sent twice is refused, and so is an empty one, with `INVALID_ARGUMENT`. So is a
/// binary value that is not base64. The client chooses the value: use it behind something that rejects made-up ones.
///
/// For conditions, use [`Header("x-tenant").equals(..)`](Header::equals).
///
/// ```
/// use sluicegate_tonic::key::Metadata;
/// use sluicegate_tonic::{Limit, RateLimitLayer};
///
/// let layer = RateLimitLayer::new(Limit::per_second(50).by(Metadata("x-tenant")));
/// # let _ = layer;
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Metadata<N = &'static str>(pub N);

impl<V: View, N: AsRef<str>> Key<V> for Metadata<N> {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let name = self.0.as_ref();
        let (is_binary, header) = (is_binary(name), Header(name));
        if !is_binary {
            return header.write(view, key);
        }
        // Exactly one value, and it is not empty.
        header.write(view, &mut KeyBuf::new())?;
        let encoded = view.header_lines(name).next().unwrap_or_default().trim_ascii();
        let value = BASE64.decode(encoded);
        let value = value.map_err(|_| Missing::ambiguous(format!("base64 in `{name}`")))?;
        let mut text = Vec::with_capacity(name.len() + 1 + value.len());
        text.extend(name.bytes().map(|byte| byte.to_ascii_lowercase()));
        // No name has a zero byte.
        text.push(0);
        text.extend(value);
        KeyTag::BinaryMetadata.push(key, &text);
        Ok(())
    }
}

/// Whether values of metadata with this name are sent in base64.
fn is_binary(name: &str) -> bool {
    let suffix = name.len().checked_sub(BINARY.len()).and_then(|at| name.get(at..));
    suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case(BINARY))
}

const BINARY: &str = "-bin";

/// Implementations send base64 with padding and without. Bits that are left over have to be zero, so each value has one
/// spelling.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::{key, missing};

    #[test]
    fn text_is_the_same_key_as_the_header() {
        let call = [("x-tenant", "acme")];
        assert_eq!(key(&Metadata("x-tenant"), &call), key(&Header("X-Tenant"), &call));
    }

    #[test]
    fn binary_values_are_decoded() {
        let by = Metadata("id-bin");
        let one = key(&by, &[("id-bin", "YWI=")]);
        assert_eq!(one, key(&by, &[("id-bin", "YWI")]));
        assert_eq!(one, key(&Metadata("ID-Bin"), &[("id-bin", "YWI")]));
        assert_ne!(one, key(&by, &[("id-bin", "YWM")]));
        assert_ne!(one, key(&Metadata("ab-bin"), &[("ab-bin", "YWI")]));
        // Longer than a key that is kept as written.
        let long = "A".repeat(8_000);
        assert_ne!(key(&by, &[("id-bin", &long)]), key(&by, &[("id-bin", &long[4..])]));
    }

    #[test]
    fn a_binary_value_has_one_spelling() {
        for value in ["YWJ=", "YW I", "YWI*", "YWI,YWI", "Y", "=", "YWI=="] {
            let missing = missing(&Metadata("id-bin"), &[("id-bin", value)]);
            assert!(missing.is_client() && missing.is_ambiguous(), "{value}");
        }
    }

    #[test]
    fn metadata_that_is_absent_empty_or_sent_twice_is_the_clients_to_mend() {
        for by in [Metadata("id"), Metadata("id-bin")] {
            assert!(missing(&by, &[]).is_client());
            assert!(missing(&by, &[(by.0, " ")]).is_client());
            assert!(missing(&by, &[(by.0, "YWI"), (by.0, "YWI")]).is_ambiguous());
        }
        assert!(missing(&Metadata("no name-bin"), &[]).is_server());
    }
}
