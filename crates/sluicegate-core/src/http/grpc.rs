//! gRPC and gRPC-Web: what tells a request from others, and the names of a status on the wire.

use std::time::Duration;

/// The code of the status.
pub const STATUS: &str = "grpc-status";
/// The text of the status, percent-encoded.
pub const MESSAGE: &str = "grpc-message";
/// How long to wait before the next attempt, in milliseconds. A negative number forbids it (gRFC A6).
pub const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// The value of [`PUSHBACK`] that forbids another attempt.
pub const NEVER: &str = "-1";

/// The content type of a response to a request with this content type. `None` if the request is not one of gRPC or
/// gRPC-Web.
///
/// It is one of a few texts of this crate, so that no response repeats what a client wrote.
#[inline]
pub fn response_type(content_type: &[u8]) -> Option<&'static str> {
    let (named, rest) = content_type.split_at_checked(GRPC.len())?;
    if !named.eq_ignore_ascii_case(GRPC.as_bytes()) {
        return None;
    }
    // Two lengths cover both, and the longer one comes first.
    let web = [("-web-text", GRPC_WEB_TEXT), ("-web", GRPC_WEB), ("", GRPC)];
    web.into_iter().find_map(|(suffix, answer)| {
        let (found, rest) = rest.split_at_checked(suffix.len())?;
        let is_end = matches!(rest.first(), None | Some(b'+' | b';' | b' ' | b'\t'));
        (found.eq_ignore_ascii_case(suffix.as_bytes()) && is_end).then_some(answer)
    })
}

/// The value of [`PUSHBACK`] for this time: in milliseconds, rounded up, at least 1.
///
/// Clients read it into 32 bits, and take a longer number for "never". So it is at most 24 days.
pub fn pushback(wait: Duration) -> u32 {
    let millis = wait.as_nanos().div_ceil(1_000_000).clamp(1, i32::MAX as u128);
    millis as u32
}

const GRPC: &str = "application/grpc";
const GRPC_WEB: &str = "application/grpc-web+proto";
const GRPC_WEB_TEXT: &str = "application/grpc-web-text+proto";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_grpc_is_known_by_its_content_type() {
        for (content_type, answer) in [
            ("application/grpc", GRPC),
            ("application/grpc+proto", GRPC),
            ("Application/gRPC+json", GRPC),
            ("application/grpc; charset=utf-8", GRPC),
            ("application/grpc ", GRPC),
            ("application/grpc-web", GRPC_WEB),
            ("application/grpc-web+proto", GRPC_WEB),
            ("application/GRPC-Web+proto", GRPC_WEB),
            ("application/grpc-web-text", GRPC_WEB_TEXT),
            ("application/grpc-web-text+proto", GRPC_WEB_TEXT),
        ] {
            assert_eq!(response_type(content_type.as_bytes()), Some(answer), "{content_type}");
        }
    }

    #[test]
    fn a_content_type_that_only_begins_like_grpc_is_another() {
        for content_type in [
            "application/grpcx",
            "application/grpc-foo",
            "application/grpc-webx",
            "application/grpc-web-",
            "application/grpc-web-texts",
            "application/json",
            "text/grpc",
            " application/grpc",
            "application/gr",
            "",
        ] {
            assert_eq!(response_type(content_type.as_bytes()), None, "{content_type}");
        }
    }

    #[test]
    fn a_pushback_is_never_too_early_and_fits_into_32_bits() {
        assert_eq!(pushback(Duration::ZERO), 1);
        assert_eq!(pushback(Duration::from_micros(19_001)), 20);
        assert_eq!(pushback(Duration::from_secs(1_800)), 1_800_000);
        assert_eq!(pushback(Duration::MAX), i32::MAX.unsigned_abs());
    }
}
