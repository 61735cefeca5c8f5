use std::time::Duration;

use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::client::Action;
use crate::fair::{Band, Demand, Want};
use crate::grpc::generated as proto;
use crate::message::{Release, Request, ResourceRequest, Response};
use crate::pool::{Answer, Ask, AskError, Grant};
use crate::server::Server;
use crate::template::{Template, Templates};

fn amounts() -> impl Strategy<Value = Amount> {
    prop_oneof![0..=Amount::MAX.millionths(), 0..1_000_000_u64].prop_map(Amount::from_millionths)
}

fn demands() -> impl Strategy<Value = Demand> {
    (any::<u8>(), amounts(), 1..=100_000_000_000_u64).prop_map(|(band, wants, weight)| Demand {
        band: Band(band),
        want: Want { wants, weight },
        whole: weight % 2 == 0,
    })
}

fn resources(is_server: bool) -> impl Strategy<Value = ResourceRequest> {
    let count = if is_server { 1..=64 } else { 1..=1 };
    let demands = prop::collection::vec(demands(), count);
    (".{1,20}", demands, amounts(), amounts(), any::<bool>()).prop_map(
        move |(name, demands, has, outstanding, learning)| ResourceRequest {
            resource: name.into(),
            demands,
            has,
            outstanding,
            learning: is_server && learning,
        },
    )
}

fn requests(is_server: bool) -> impl Strategy<Value = Request> {
    let resources = prop::collection::vec(resources(is_server), 0..5);
    (".{0,20}", any::<u64>(), any::<u64>(), any::<u64>(), resources).prop_map(
        |(client, instance, sequence, fence, resources)| Request {
            client: client.into(),
            instance,
            sequence,
            fence,
            resources,
        },
    )
}

fn answers() -> impl Strategy<Value = Result<Answer, AskError>> {
    let durations = || any::<u32>().prop_map(|millis| Duration::from_millis(millis.into()));
    let grants = (amounts(), durations(), durations(), amounts()).prop_map(
        |(capacity, ttl, refresh, safe)| Answer::Grant(Grant { capacity, ttl, refresh, safe }),
    );
    prop_oneof![
        grants.prop_map(Ok),
        durations().prop_map(|again| Ok(Answer::Keep(again))),
        Just(Ok(Answer::AskAgain)),
        Just(Err(AskError::Stale)),
        Just(Err(AskError::ManyResources)),
        Just(Err(AskError::ManyClients)),
    ]
}

proptest! {
    #[test]
    fn a_request_arrives_as_it_was_sent(request in requests(false)) {
        let bytes = write_request(request.clone()).encode_to_vec();
        let read = proto::GetCapacityRequest::decode(&*bytes).unwrap().read();
        prop_assert_eq!(read, Ok(request));
    }

    #[test]
    fn a_request_of_a_server_arrives_as_it_was_sent(request in requests(true)) {
        let bytes = write_server_request(request.clone()).encode_to_vec();
        let read = proto::GetServerCapacityRequest::decode(&*bytes).unwrap().read();
        prop_assert_eq!(read, Ok(request));
    }

    #[test]
    fn an_answer_arrives_as_it_was_sent(
        request in requests(true),
        all in prop::collection::vec(answers(), 5),
        fence in any::<u64>(),
    ) {
        let answers = all[..request.resources.len()].to_vec();
        let response = Response { sequence: request.sequence, fence, answers };
        let names: Vec<_> = request.resources.iter().map(|one| one.resource.clone()).collect();
        let sent = proto::GetCapacityResponse::write(&request, &response, 1_800_000_000);
        let read = proto::GetCapacityResponse::decode(&*sent.encode_to_vec()).unwrap().read(&names);
        prop_assert_eq!(read, Ok(response.clone()));
        let sent = proto::GetServerCapacityResponse::write(&request, &response, 1_800_000_000);
        let read = proto::GetServerCapacityResponse::decode(&*sent.encode_to_vec()).unwrap();
        prop_assert_eq!(read.read(&names), Ok(response));
    }

    #[test]
    fn any_numbers_are_read_without_a_panic(
        wants in any::<f64>(),
        has in any::<f64>(),
        priority in any::<i64>(),
        weight in any::<i64>(),
        ttl in any::<Option<u64>>(),
        kind in any::<Option<i32>>(),
    ) {
        let lease = proto::Lease { capacity: has, ttl_ms: ttl, ..Default::default() };
        let request = proto::GetServerCapacityRequest {
            resource: vec![proto::ServerCapacityResourceRequest {
                has: Some(lease),
                wants: vec![proto::PriorityBandAggregate { priority, num_clients: weight, wants, whole: None }],
                ..Default::default()
            }],
            ..Default::default()
        };
        if let Ok(request) = request.read() {
            prop_assert!(request.resources[0].has <= Amount::MAX);
        }
        let answer = proto::GetCapacityResponse {
            response: vec![proto::ResourceResponse { gets: lease, answer: kind, ..Default::default() }],
            sequence: Some(1),
            fence: Some(1),
            ..Default::default()
        };
        let _ = answer.read(&["".into()]);
    }
}

#[test]
fn a_release_arrives_as_it_was_sent() {
    let release = Release {
        client: "one".into(),
        instance: 9,
        sequence: 7,
        fence: 3,
        resources: vec!["db".into(), "cache".into()],
    };
    assert_eq!(read_release(write_release(release.clone())), release);
}

/// The bytes that Doorman's own client sends: only the fields of its proto file.
#[test]
fn a_request_in_the_bytes_of_doorman_is_read() {
    let bytes: Vec<u8> =
        [&b"\x0a\x03old\x12\x0f\x0a\x02db\x10\x01\x21"[..], &40.0_f64.to_le_bytes()].concat();
    let request = proto::GetCapacityRequest::decode(&*bytes).unwrap().read().unwrap();
    assert_eq!((&*request.client, request.sequence), ("old", 0));
    assert_eq!(request.resources[0].demands, [Demand::of(Amount::units(40)).band(1)]);
}

#[test]
fn a_server_of_very_many_resources_asks_for_as_many_at_once_as_its_parent_takes() {
    let mut server = Server::child("child", Templates::new([Template::from_parent("*")]).unwrap());
    server.lead(0, 1, Some(Vec::new()), 0);
    let demands = [Demand::of(Amount::units(1))];
    for number in 0..1_001 {
        let resource = number.to_string();
        server.pool().ask(0, &Ask::new("client", &resource, 1, 1, &demands)).unwrap();
    }
    for length in [1_000, 1] {
        let Action::Ask(request) = server.poll(0) else { panic!("it asks for all of them") };
        assert_eq!(request.resources.len(), length);
        check_request(&request, 1_000).unwrap();
        let answers = vec![Ok(Answer::Keep(Duration::from_secs(1))); length];
        server.answered(0, &Response { sequence: request.sequence, fence: 1, answers });
    }
    assert!(matches!(server.poll(0), Action::Wait(_)));
}
