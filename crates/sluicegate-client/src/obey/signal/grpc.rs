use std::time::Duration;

use http::{HeaderMap, HeaderName};

use super::Signal;
use super::line::Line;

static STATUS: HeaderName = HeaderName::from_static("grpc-status");
static PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

const RESOURCE_EXHAUSTED: &str = "8";
const UNAVAILABLE: &str = "14";

/// Reads the status of gRPC, its pushback, and the `RetryInfo` of its details.
///
/// They are in the header of a response that has no message, which is how servers refuse. Those in trailers behind
/// messages are not seen.
pub(super) fn read(headers: &HeaderMap, signal: &mut Signal) {
    let Some(status) = Line::of(headers, &STATUS).text().filter(|status| *status != "0") else {
        return;
    };
    // gRFC A6: a number of milliseconds; if it is negative or cannot be read, do not retry. This holds for each status.
    let pushback = Line::of(headers, &PUSHBACK);
    let wait = pushback.text().and_then(|text| text.parse().ok()).map(Duration::from_millis);
    signal.never_retry = wait.is_none() && headers.contains_key(&PUSHBACK);
    signal.retry_after = wait.or(signal.retry_after);
    if let RESOURCE_EXHAUSTED | UNAVAILABLE = status {
        signal.retry_after = wait.or_else(|| details::retry_delay(headers)).or(signal.retry_after);
        signal.refused |= status == RESOURCE_EXHAUSTED || signal.retry_after.is_some();
    }
}

#[cfg(feature = "grpc")]
mod details {
    use std::time::Duration;

    use base64::Engine;
    use base64::engine::DecodePaddingMode;
    use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
    use http::{HeaderMap, HeaderName};
    use prost::Message;

    use crate::obey::signal::line::Line;

    static DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
    const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

    /// Implementations send base64 with padding and without.
    const BASE64: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );

    /// `google.rpc.Status`, as far as it is read.
    #[derive(Clone, PartialEq, Message)]
    pub(super) struct Status {
        #[prost(message, repeated, tag = "3")]
        pub(super) details: Vec<Any>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(super) struct Any {
        #[prost(string, tag = "1")]
        pub(super) type_url: String,
        #[prost(bytes = "vec", tag = "2")]
        pub(super) value: Vec<u8>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(super) struct RetryInfo {
        #[prost(message, optional, tag = "1")]
        pub(super) retry_delay: Option<Delay>,
    }

    #[derive(Clone, Copy, PartialEq, Message)]
    pub(super) struct Delay {
        #[prost(int64, tag = "1")]
        pub(super) seconds: i64,
        #[prost(int32, tag = "2")]
        pub(super) nanos: i32,
    }

    pub(super) fn retry_delay(headers: &HeaderMap) -> Option<Duration> {
        let bytes = BASE64.decode(Line::of(headers, &DETAILS).text()?).ok()?;
        let status = Status::decode(&*bytes).ok()?;
        let info = status.details.iter().find(|any| any.type_url == RETRY_INFO)?;
        let delay = RetryInfo::decode(&*info.value).ok()?.retry_delay?;
        let seconds = u64::try_from(delay.seconds).ok()?;
        let nanos = u32::try_from(delay.nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
        Some(Duration::new(seconds, nanos))
    }
}

#[cfg(not(feature = "grpc"))]
mod details {
    use std::time::Duration;

    use http::HeaderMap;

    pub(super) fn retry_delay(_: &HeaderMap) -> Option<Duration> {
        None
    }
}
