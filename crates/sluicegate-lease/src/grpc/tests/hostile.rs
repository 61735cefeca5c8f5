//! Servers that answer what cannot be right.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tonic::{Request, Response, Status};

use super::serve_raw;
use crate::amount::Amount;
use crate::client::OnLoss;
use crate::grpc::generated as proto;
use crate::grpc::generated::capacity_server::Capacity;
use crate::lease::{Basis, LeaseClient};

type Twist = fn(&mut proto::GetCapacityResponse);

/// Answers the first request as it should, and then all others twisted.
#[derive(Clone)]
struct Hostile {
    twist: Twist,
    asked: Arc<Mutex<u32>>,
    twisted: Arc<tokio::sync::Notify>,
}

#[tonic::async_trait]
impl Capacity for Hostile {
    async fn get_capacity(
        &self,
        request: Request<proto::GetCapacityRequest>,
    ) -> Result<Response<proto::GetCapacityResponse>, Status> {
        let request = request.into_inner();
        let gets = proto::Lease {
            capacity: 10.0,
            ttl_ms: Some(60_000),
            refresh_ms: Some(20),
            ..Default::default()
        };
        let answers = request.resource.iter().map(|resource| proto::ResourceResponse {
            resource_id: resource.resource_id.clone(),
            gets,
            safe_capacity: Some(3.0),
            answer: None,
        });
        let mut answer = proto::GetCapacityResponse {
            response: answers.collect(),
            mastership: None,
            sequence: request.sequence,
            fence: Some(5),
        };
        let mut asked = self.asked.lock().unwrap();
        *asked += 1;
        if *asked > 1 {
            (self.twist)(&mut answer);
            self.twisted.notify_one();
        }
        Ok(Response::new(answer))
    }

    async fn discovery(
        &self,
        _: Request<proto::DiscoveryRequest>,
    ) -> Result<Response<proto::DiscoveryResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_server_capacity(
        &self,
        _: Request<proto::GetServerCapacityRequest>,
    ) -> Result<Response<proto::GetServerCapacityResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn release_capacity(
        &self,
        _: Request<proto::ReleaseCapacityRequest>,
    ) -> Result<Response<proto::ReleaseCapacityResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_right_changes_nothing() {
    let twists: [(&str, Twist); 11] = [
        ("not a number", |answer| answer.response[0].gets.capacity = f64::NAN),
        ("less than nothing", |answer| answer.response[0].gets.capacity = -1.0),
        ("without end", |answer| answer.response[0].gets.capacity = f64::INFINITY),
        ("unsafe", |answer| answer.response[0].safe_capacity = Some(f64::NAN)),
        ("without a length", |answer| answer.response[0].gets.ttl_ms = None),
        ("of an unknown kind", |answer| answer.response[0].answer = Some(99)),
        ("for another resource", |answer| answer.response[0].resource_id = "cache".into()),
        ("for more resources", |answer| answer.response.push(answer.response[0].clone())),
        ("to another request", |answer| answer.sequence = Some(1)),
        ("of an older master", |answer| {
            answer.fence = Some(4);
            answer.response[0].gets.capacity = 99.0;
        }),
        ("sends elsewhere", |answer| {
            let master_address = Some("nowhere at all".to_owned());
            answer.mastership = Some(proto::Mastership { master_address });
        }),
    ];
    for (what, twist) in twists {
        let hostile = Hostile { twist, asked: Arc::default(), twisted: Arc::default() };
        let server = serve_raw(hostile.clone()).await;
        let client = LeaseClient::connect(&server.url()).unwrap();
        let wants = Amount::units(10);
        let mut lease = client.resource("db").wants(wants).on_loss(OnLoss::Stop).lease().unwrap();
        lease.changed().await.unwrap();
        let before = lease.state();
        hostile.twisted.notified().await;
        // Nothing comes of it, and the client waits before it asks again.
        let changed = tokio::time::timeout(Duration::from_millis(100), lease.changed()).await;
        assert!(changed.is_err(), "{what}: {:?}", lease.state());
        assert_eq!((lease.state(), lease.basis()), (before, Basis::Lease), "{what}");
        assert_eq!(*hostile.asked.lock().unwrap(), 2, "{what}");
    }
}
