use super::{Unreadable, amount};
use crate::amount::Amount;
use crate::demand::{Band, Demand};
use crate::fair::Want;
use crate::grpc::generated as proto;
use crate::message::{Request, ResourceRequest};

/// A request from the wire. A client that numbers its requests does not send number 0.
pub(in crate::grpc) trait ReadRequest {
    fn read(self) -> Result<Request, Unreadable>;
}

impl ReadRequest for proto::GetCapacityRequest {
    fn read(self) -> Result<Request, Unreadable> {
        let resources = self.resource.into_iter().map(|request| {
            let resource = &request.resource_id;
            let weight = request.weight.unwrap_or(1);
            let demand = demand(resource, request.priority, request.wants, weight)?;
            Ok(ResourceRequest {
                demands: vec![demand],
                has: has(resource, request.has)?,
                outstanding: amount("outstanding", resource, request.outstanding.unwrap_or(0.0))?,
                learning: false,
                resource: request.resource_id.into(),
            })
        });
        Ok(Request {
            resources: resources.collect::<Result<_, _>>()?,
            client: self.client_id.into(),
            instance: self.instance.unwrap_or(0),
            sequence: self.sequence.unwrap_or(0),
            fence: self.fence.unwrap_or(0),
        })
    }
}

impl ReadRequest for proto::GetServerCapacityRequest {
    fn read(self) -> Result<Request, Unreadable> {
        let resources = self.resource.into_iter().map(|request| {
            let resource = &request.resource_id;
            let demands = request.wants.iter().map(|band| {
                let weight = u64::try_from(band.num_clients).map_err(|_| Unreadable::Weight {
                    resource: resource.clone(),
                    weight: band.num_clients,
                })?;
                demand(resource, band.priority, band.wants, weight)
            });
            Ok(ResourceRequest {
                demands: demands.collect::<Result<_, _>>()?,
                has: has(resource, request.has)?,
                outstanding: amount("outstanding", resource, request.outstanding.unwrap_or(0.0))?,
                learning: request.learning.unwrap_or(false),
                resource: request.resource_id.into(),
            })
        });
        Ok(Request {
            resources: resources.collect::<Result<_, _>>()?,
            client: self.server_id.into(),
            instance: self.instance.unwrap_or(0),
            sequence: self.sequence.unwrap_or(0),
            fence: self.fence.unwrap_or(0),
        })
    }
}

/// Writes the request of a client that has no clients of its own.
pub(in crate::grpc) fn write_request(request: Request) -> proto::GetCapacityRequest {
    let resources = request.resources.into_iter().map(|request| {
        let demand = request.demands.first().copied().unwrap_or(Demand::of(Amount::ZERO));
        proto::ResourceRequest {
            resource_id: request.resource.into(),
            priority: demand.band.0.into(),
            has: Some(held(request.has)),
            wants: demand.want.wants.as_f64(),
            weight: Some(demand.want.weight),
            outstanding: Some(request.outstanding.as_f64()),
        }
    });
    proto::GetCapacityRequest {
        resource: resources.collect(),
        client_id: request.client.into(),
        sequence: Some(request.sequence),
        fence: Some(request.fence),
        instance: Some(request.instance),
    }
}

/// Writes the request of a server.
pub(in crate::grpc) fn write_server_request(request: Request) -> proto::GetServerCapacityRequest {
    let band = |demand: &Demand| proto::PriorityBandAggregate {
        priority: demand.band.0.into(),
        num_clients: i64::try_from(demand.want.weight).unwrap_or(i64::MAX),
        wants: demand.want.wants.as_f64(),
    };
    let resources =
        request.resources.into_iter().map(|request| proto::ServerCapacityResourceRequest {
            resource_id: request.resource.into(),
            has: Some(held(request.has)),
            wants: request.demands.iter().map(band).collect(),
            outstanding: Some(request.outstanding.as_f64()),
            learning: Some(request.learning),
        });
    proto::GetServerCapacityRequest {
        resource: resources.collect(),
        server_id: request.client.into(),
        sequence: Some(request.sequence),
        fence: Some(request.fence),
        instance: Some(request.instance),
    }
}

fn demand(resource: &str, band: i64, wants: f64, weight: u64) -> Result<Demand, Unreadable> {
    let unknown = |_| Unreadable::Band { resource: resource.to_owned(), band };
    Ok(Demand {
        band: Band(u8::try_from(band).map_err(unknown)?),
        want: Want { wants: amount("wants", resource, wants)?, weight },
    })
}

fn has(resource: &str, lease: Option<proto::Lease>) -> Result<Amount, Unreadable> {
    lease.map_or(Ok(Amount::ZERO), |lease| amount("has", resource, lease.capacity))
}

fn held(amount: Amount) -> proto::Lease {
    proto::Lease { capacity: amount.as_f64(), ..proto::Lease::default() }
}
