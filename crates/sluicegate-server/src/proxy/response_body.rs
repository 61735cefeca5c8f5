use std::error::Error;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use sluicegate::response;
use tokio::sync::OwnedSemaphorePermit;

use crate::proxy::check::Bad;
use crate::proxy::pools::UnderWay;
use crate::run::HoldingBody;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// The body of a response: that of the application, or one of the proxy itself.
pub(crate) type ResponseBody = Either<UpstreamBody, Full<Bytes>>;

/// The place among the requests of the application, and of its connection, is kept until its body has ended.
pub(crate) type UpstreamBody =
    HoldingBody<response::Body<Incoming>, (OwnedSemaphorePermit, UnderWay)>;

// How the length of a response is said: in one way, which the client cannot read differently.

/// The body of a response that has passed everything.
pub(crate) type StackBody = UnsyncBoxBody<Bytes, BoxError>;

/// Leaves one `Content-Length` where a response repeats it (RFC 9110, section 8.6).
///
/// # Errors
///
/// If a response has different lengths, or a transfer encoding besides `chunked`. The proxy ends that encoding here without
/// decoding it, so the client would take the encoded bytes for the body.
pub(crate) fn settle_length(headers: &mut HeaderMap) -> Result<(), Bad> {
    let bad = |why| Err((StatusCode::BAD_GATEWAY, why));
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    if !is_chunked {
        return bad("the response of the application has a transfer encoding besides `chunked`");
    }
    let lines = headers.get_all(CONTENT_LENGTH).iter();
    let mut lengths = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let first = lengths.next().map(<[u8]>::trim_ascii);
    let (mut is_repeated, mut is_equal) = (false, true);
    for length in lengths {
        is_repeated = true;
        is_equal &= Some(length.trim_ascii()) == first;
    }
    if !is_equal {
        return bad("the response of the application has two lengths");
    }
    if let (true, Some(Ok(length))) = (is_repeated, first.map(HeaderValue::from_bytes)) {
        headers.insert(CONTENT_LENGTH, length);
    }
    Ok(())
}

#[cfg(test)]
mod response_length_tests {
    use http::HeaderName;

    use super::*;

    fn settled(fields: &[(&'static str, &'static str)]) -> Result<Vec<String>, Bad> {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut headers: HeaderMap = fields.iter().map(field).collect();
        settle_length(&mut headers)?;
        let lengths = headers.get_all(CONTENT_LENGTH).iter();
        Ok(lengths.map(|length| length.to_str().unwrap().to_owned()).collect())
    }

    #[test]
    fn a_length_that_is_repeated_is_written_once() {
        let [one, list] = ["2", "2, 2"].map(|length| ("content-length", length));
        for fields in [&[one][..], &[list], &[one, one], &[list, one]] {
            assert_eq!(settled(fields), Ok(vec!["2".to_owned()]), "{fields:?}");
        }
        assert_eq!(settled(&[]), Ok(Vec::new()));
    }

    #[test]
    fn lengths_and_encodings_that_a_client_reads_differently_are_errors() {
        for fields in [
            &[("content-length", "2, 3")][..],
            &[("content-length", "2"), ("content-length", "3")],
            &[("content-length", "2,")],
            &[("transfer-encoding", "gzip")],
            &[("transfer-encoding", "gzip, chunked")],
            &[("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")],
        ] {
            assert!(settled(fields).is_err(), "{fields:?}");
        }
        assert!(settled(&[("transfer-encoding", "Chunked")]).is_ok());
    }
}
