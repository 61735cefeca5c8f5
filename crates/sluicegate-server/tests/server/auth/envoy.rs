//! `ext_authz` over gRPC.

use envoy_types::pb::envoy::config::core::v3::address::Address as AddressKind;
use envoy_types::pb::envoy::config::core::v3::{
    Address, HeaderMap, HeaderValue, HeaderValueOption, SocketAddress,
};
use envoy_types::pb::envoy::service::auth::v3::attribute_context::{HttpRequest, Peer, Request};
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{AttributeContext, CheckRequest, CheckResponse};

use super::RULES;
use super::server::{start, start_with};

/// A GET of `path` by the client at `address`.
pub(crate) fn question(path: &str, address: &str) -> CheckRequest {
    let socket = SocketAddress { address: address.to_owned(), ..SocketAddress::default() };
    let address = Address { address: Some(AddressKind::SocketAddress(socket)) };
    let http = HttpRequest {
        method: "GET".to_owned(),
        path: path.to_owned(),
        host: "api.example".to_owned(),
        headers: [(":path", path), (":authority", "api.example"), ("x-api-key", "k1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..HttpRequest::default()
    };
    let source = Peer { address: Some(address), ..Peer::default() };
    let request = Request { http: Some(http), ..Request::default() };
    let (source, request) = (Some(source), Some(request));
    let attributes = AttributeContext { source, request, ..AttributeContext::default() };
    CheckRequest { attributes: Some(attributes) }
}

fn http(question: &mut CheckRequest) -> &mut HttpRequest {
    let request = question.attributes.as_mut().and_then(|attributes| attributes.request.as_mut());
    request.and_then(|request| request.http.as_mut()).expect("a request")
}

fn fields(options: &[HeaderValueOption]) -> Vec<(&str, &str)> {
    let headers = options.iter().filter_map(|option| option.header.as_ref());
    headers.map(|header| (header.key.as_str(), header.value.as_str())).collect()
}

/// The fields that Envoy adds to the response, or the status and the fields of its own.
fn answer(response: &CheckResponse) -> (u32, Vec<(&str, &str)>) {
    let code = response.status.as_ref().expect("a status").code;
    match response.http_response.as_ref().expect("an answer") {
        HttpResponse::OkResponse(ok) => {
            assert_eq!(code, 0);
            (200, fields(&ok.response_headers_to_add))
        }
        HttpResponse::DeniedResponse(denied) => {
            assert_eq!(code, 7);
            assert!(denied.body.contains("quota-exceeded"), "{}", denied.body);
            let status = denied.status.as_ref().expect("a status").code;
            (u32::try_from(status).expect("a status"), fields(&denied.headers))
        }
        HttpResponse::ErrorResponse(_) => panic!("an error"),
    }
}

#[tokio::test]
async fn envoy_adds_the_fields_and_gives_the_refusal() {
    let mut server = start(RULES).await;
    for left in [1, 0] {
        let response = server.grpc.check(question("/users", "192.0.2.7")).await;
        let response = response.expect("an answer").into_inner();
        let (status, fields) = answer(&response);
        assert_eq!(status, 200);
        let left = format!("\"api\";r={left};t=30");
        assert_eq!(
            fields,
            [("ratelimit-policy", "\"api\";q=2;w=60"), ("ratelimit", left.as_str())]
        );
    }
    let response = server.grpc.check(question("/users", "192.0.2.7")).await;
    let response = response.expect("an answer").into_inner();
    let (status, fields) = answer(&response);
    assert_eq!(status, 429);
    for field in [
        ("retry-after", "30"),
        ("content-type", "application/problem+json"),
        ("cache-control", "no-store"),
        ("ratelimit", "\"api\";r=0;t=30"),
    ] {
        assert!(fields.contains(&field), "{field:?} in {fields:?}");
    }
    let other = server.grpc.check(question("/users", "192.0.2.8")).await;
    assert_eq!(answer(&other.expect("an answer").into_inner()).0, 200);
}

#[tokio::test]
async fn header_fields_are_read_as_text_and_as_bytes() {
    let mut server = start(&RULES.replace("\"ip\"", "{ header = \"x-api-key\" }")).await;
    let mut raw = question("/", "192.0.2.7");
    http(&mut raw).headers.clear();
    let line = HeaderValue {
        key: "x-api-key".into(),
        raw_value: b"k1".to_vec(),
        ..HeaderValue::default()
    };
    http(&mut raw).header_map = Some(HeaderMap { headers: vec![line] });
    for (question, status) in [(question("/", "192.0.2.7"), 200), (raw.clone(), 200), (raw, 429)] {
        let response = server.grpc.check(question).await.expect("an answer").into_inner();
        assert_eq!(answer(&response).0, status);
    }
}

#[tokio::test]
async fn a_message_that_makes_no_sense_is_an_invalid_argument() {
    let mut server = start(RULES).await;
    let mut nothing = question("/", "192.0.2.7");
    nothing.attributes.as_mut().expect("attributes").request = None;
    for question in [CheckRequest::default(), nothing] {
        let status = server.grpc.check(question).await.expect_err("a refusal");
        let text = "there is no `attributes.request.http`";
        assert_eq!((status.code(), status.message()), (tonic::Code::InvalidArgument, text));
    }
}

/// Where Envoy has `failure_mode_allow`, an error lets the client through.
#[tokio::test]
async fn a_request_that_is_not_valid_is_refused_with_400_and_is_no_error() {
    let mut server = start(RULES).await;
    let mut method = question("/", "192.0.2.7");
    http(&mut method).method = "G T".to_owned();
    let mut value = question("/", "192.0.2.7");
    http(&mut value).headers.insert("x-a".to_owned(), "a\nb".to_owned());
    let long = format!("/{}", "a".repeat(70_000));
    for (question, text) in [
        (method, "`G T` is not a method\n"),
        (question("users", "192.0.2.7"), "`users` is not a path\n"),
        (question(&long, "192.0.2.7"), "is not a path\n"),
        (value, "the field `x-a` has no valid value\n"),
    ] {
        let answer = server.grpc.check(question).await.expect("an answer").into_inner();
        let Some(HttpResponse::DeniedResponse(denied)) = answer.http_response else {
            panic!("let through");
        };
        assert_eq!(denied.status.map(|status| status.code), Some(400));
        assert!(denied.body.ends_with(text) && denied.body.len() < 200, "{}", denied.body);
    }
}

#[tokio::test]
async fn a_store_that_is_away_is_an_error_and_no_refusal() {
    let away = sluicegate_redis::Redis::builder().url("redis://127.0.0.1:1").build();
    let mut server = start_with(RULES, |service| service.store(away.expect("a URL"))).await;
    let status = server.grpc.check(question("/", "192.0.2.7")).await.expect_err("an error");
    assert_eq!(status.code(), tonic::Code::Unavailable);
}
