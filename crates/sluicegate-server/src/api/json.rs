//! `/json`: Envoy's rate limit service for clients without gRPC, with the messages of the protocol as JSON.

use std::fmt;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{Request as HttpRequest, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use sluicegate_config::envoy::service;
use sluicegate_config::envoy::service::{Answer, Hits, Status, Unit};

use super::no_store;
use super::read::{JsonText, Object};
use crate::admin::is_own;
use crate::fields::rounded_up;
use crate::rls::{Failure, answer, fields_to_add, numbered};
use crate::service::Service;

/// The largest body, in bytes.
pub(super) const LARGEST: usize = 64 * 1024;

/// `POST /json`: 200 if the request is within its limits, 429 if it is over one, each with the answer as JSON. 400 if
/// the request makes no sense, 415 if it is not declared as JSON, 503 if the store could not decide.
pub fn routes(service: &Service) -> Router {
    Router::new()
        .route("/json", post(decide))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(service.clone())
}

async fn decide(State(service): State<Service>, request: Request) -> Response {
    let is_declared = may_be_json(&request);
    match Bytes::from_request(request, &()).await {
        Ok(body) if is_declared => answered(&service, &body).await,
        Ok(_) => {
            let why = "expected `Content-Type: application/json`, and no page of another site\n";
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, why).into_response()
        }
        Err(error) => error.into_response(),
    }
}

/// Whether a request is declared as JSON, or not at all by a client that is no browser. A page of any site can have a
/// browser send other bodies, without being asked, to a port that only the browser can reach.
pub(super) fn may_be_json<B>(request: &HttpRequest<B>) -> bool {
    let headers = request.headers();
    let is_json = match headers.get(header::CONTENT_TYPE) {
        None => !headers.contains_key(header::ORIGIN),
        Some(kind) => is_json(kind.as_bytes()),
    };
    is_json && is_own(request)
}

/// Whether a content type is JSON, as axum reads it.
fn is_json(kind: &[u8]) -> bool {
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let Some((start, subtype)) = essence.split_at_checked(b"application/".len()) else {
        return false;
    };
    let suffix = subtype.len().checked_sub(b"+json".len()).map(|at| &subtype[at..]);
    start.eq_ignore_ascii_case(b"application/")
        && (subtype.eq_ignore_ascii_case(b"json")
            || suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case(b"+json")))
}

/// The answer to a request with this body.
pub(super) async fn answered(service: &Service, body: &[u8]) -> Response {
    let message: JsonRequest = match serde_json::from_slice(body) {
        Ok(Object(message)) => message,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    let request = match message.request() {
        Ok(request) => request,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    match answer(service, &request, service.deadline()).await {
        Ok(answer) => {
            let status = match answer.is_over {
                true => StatusCode::TOO_MANY_REQUESTS,
                false => StatusCode::OK,
            };
            (status, no_store(), Json(JsonResponse::new(service, &answer))).into_response()
        }
        Err(Failure::Bad(bad)) => (StatusCode::BAD_REQUEST, format!("{bad}\n")).into_response(),
        Err(Failure::Undecided(undecided)) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("{undecided}\n")).into_response()
        }
    }
}

// The messages of the protocol as JSON: the mapping of proto3, in which names are in camel case or as in the protocol
// file, numbers may be texts, and fields with their default value are left out.

/// A `RateLimitRequest`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct JsonRequest {
    #[serde(default, deserialize_with = "or_default")]
    domain: String,
    #[serde(default, deserialize_with = "list")]
    descriptors: Vec<Descriptor>,
    #[serde(default, alias = "hits_addend", deserialize_with = "or_default")]
    hits_addend: Number,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Descriptor {
    #[serde(default, deserialize_with = "list")]
    entries: Vec<Entry>,
    #[serde(default, deserialize_with = "object")]
    limit: Option<Override>,
    #[serde(default, alias = "hits_addend")]
    hits_addend: Option<Number>,
    #[serde(default, alias = "is_negative_hits", deserialize_with = "or_default")]
    is_negative_hits: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default, deserialize_with = "or_default")]
    key: JsonText<Vec<u8>>,
    #[serde(default, deserialize_with = "or_default")]
    value: JsonText<Vec<u8>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Override {
    #[serde(default, alias = "requests_per_unit", deserialize_with = "or_default")]
    requests_per_unit: Number,
    #[serde(default)]
    unit: Option<UnitName>,
}

/// A value of an enumeration: its name or its number.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected the name of a unit, or its number")]
enum UnitName {
    Name(String),
    Number(i32),
}

/// A field that may be `null`, which is the same as its absence.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A list of objects, none of which may be `null`.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let objects: Option<Vec<Object<T>>> = Option::deserialize(deserializer)?;
    Ok(objects.unwrap_or_default().into_iter().map(|Object(value)| value).collect())
}

fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let object: Option<Object<T>> = Option::deserialize(deserializer)?;
    Ok(object.map(|Object(value)| value))
}

impl JsonRequest {
    pub(super) fn request(&self) -> Result<service::Request<'_>, String> {
        let hits =
            u32::try_from(self.hits_addend.get()).map_err(|_| "hitsAddend is 2^32 or more")?;
        let descriptors = self.descriptors.iter().map(|one| one.descriptor(hits));
        Ok(service::Request {
            domain: &self.domain,
            descriptors: descriptors.collect::<Result<_, _>>()?,
        })
    }
}

impl Descriptor {
    fn descriptor(&self, hits: u32) -> Result<service::Descriptor<'_>, String> {
        let own = self.hits_addend.map(Number::get);
        let entries = self.entries.iter().map(|entry| (&*entry.key.0, &*entry.value.0));
        let limit = self.limit.as_ref().map(Override::limit).transpose()?;
        let hits = Hits::of(own, self.is_negative_hits, hits);
        Ok(service::Descriptor { entries: entries.collect(), hits, limit })
    }
}

impl Override {
    fn limit(&self) -> Result<(u32, Unit), String> {
        let unit = match &self.unit {
            Some(UnitName::Name(name)) => Unit::named(name).ok_or_else(|| format!("{name:?}")),
            Some(UnitName::Number(number)) => numbered(*number).ok_or_else(|| number.to_string()),
            None => Err("0".to_owned()),
        };
        let unit = unit.map_err(|unit| {
            format!("the unit {unit} is not known: expected SECOND, MINUTE, HOUR, DAY, MONTH or YEAR, or 1 to 6")
        })?;
        let count = self.requests_per_unit.get();
        let count = u32::try_from(count).map_err(|_| "requestsPerUnit is 2^32 or more")?;
        Ok((count, unit))
    }
}

/// A `RateLimitResponse`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JsonResponse<'a> {
    overall_code: &'static str,
    statuses: Vec<DescriptorStatus<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    response_headers_to_add: Vec<HeaderField>,
}

#[derive(Debug, Serialize)]
struct HeaderField {
    key: String,
    value: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DescriptorStatus<'a> {
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_limit: Option<RateLimit<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    limit_remaining: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_until_reset: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RateLimit<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    requests_per_unit: u32,
    unit: &'static str,
}

impl<'a> JsonResponse<'a> {
    pub(super) fn new(service: &Service, answer: &'a Answer) -> Self {
        let statuses = answer.statuses.iter().map(DescriptorStatus::new);
        let fields = fields_to_add(answer, service.fields(), service.field_names());
        let fields = fields.into_iter();
        let fields = fields.map(|field| HeaderField { key: field.key, value: field.value });
        Self {
            overall_code: code(answer.is_over),
            statuses: statuses.collect(),
            response_headers_to_add: fields.collect(),
        }
    }
}

impl<'a> DescriptorStatus<'a> {
    fn new(status: &'a Status) -> Self {
        let current_limit = status.limit.as_ref().map(|limit| RateLimit {
            name: &limit.name,
            requests_per_unit: limit.count,
            unit: limit.unit.name(),
        });
        Self {
            code: code(status.is_over),
            current_limit,
            limit_remaining: status.remaining,
            duration_until_reset: status.until_reset.map(|time| format!("{}s", rounded_up(time))),
        }
    }
}

const fn code(is_over: bool) -> &'static str {
    if is_over { "OVER_LIMIT" } else { "OK" }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

// Whole numbers as proto3 writes them in JSON.

/// A whole number. It may be written as text, and with an exponent or a fraction of zeros.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(try_from = "JsonNumber")]
pub(super) struct Number(u64);

impl Number {
    pub(super) const fn get(self) -> u64 {
        self.0
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a whole number below 2^64")]
enum JsonNumber {
    Whole(u64),
    /// Only so that an error shows the number as it was sent.
    Negative(i64),
    Fraction(f64),
    Text(String),
}

impl TryFrom<JsonNumber> for Number {
    type Error = String;

    fn try_from(written: JsonNumber) -> Result<Self, Self::Error> {
        match written {
            JsonNumber::Whole(number) => Some(number),
            JsonNumber::Negative(_) => None,
            JsonNumber::Fraction(number) => whole(number),
            JsonNumber::Text(ref text) => in_json(text).or_else(|| whole(in_json(text)?)),
        }
        .map(Self)
        .ok_or_else(|| format!("expected a whole number below 2^64, not {written}"))
    }
}

impl fmt::Display for JsonNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => write!(f, "{number}"),
            Self::Negative(number) => write!(f, "{number}"),
            Self::Fraction(number) => write!(f, "{number:?}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// A number as JSON writes it, and not `inf` or `+1`.
fn in_json<T: DeserializeOwned>(text: &str) -> Option<T> {
    let is_bare = !text.contains(|char: char| char.is_ascii_whitespace());
    serde_json::from_str(text).ok().filter(|_| is_bare)
}

/// 2^53: above it, a fraction may be another number than the one that was written.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The number, if it is a whole one that floating point holds exactly.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, not negative and below 2^53"
)]
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=EXACT).contains(&number)).then_some(number as u64)
}
