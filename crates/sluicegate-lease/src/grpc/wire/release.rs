use crate::grpc::generated as proto;
use crate::message::Release;

pub(in crate::grpc) fn read_release(release: proto::ReleaseCapacityRequest) -> Release {
    Release {
        client: release.client_id.into(),
        instance: release.instance.unwrap_or(0),
        sequence: release.sequence.unwrap_or(0),
        fence: release.fence.unwrap_or(0),
        resources: release.resource_id.into_iter().map(Into::into).collect(),
    }
}

pub(in crate::grpc) fn write_release(release: Release) -> proto::ReleaseCapacityRequest {
    proto::ReleaseCapacityRequest {
        client_id: release.client.into(),
        sequence: Some(release.sequence),
        fence: Some(release.fence),
        instance: Some(release.instance),
        resource_id: release.resources.into_iter().map(Into::into).collect(),
    }
}
