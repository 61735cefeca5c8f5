//! What clients of leases may say of themselves.

use sluicegate_lease::{Band, Call};
use tonic::Status;
use tonic::metadata::MetadataMap;

/// How the names of Envoys begin in the pool. A client with such a name could give their parts away.
const ENVOY: &str = "envoy/";

/// The last band that clients may ask in. Bands above it are the server's own.
pub(super) const LAST_BAND: u8 = 100;

/// The largest weight of a client.
pub(super) const LARGEST_WEIGHT: u32 = 1_000_000;

/// Refuses a call that only the server itself may make.
pub(super) fn check(_: &MetadataMap, call: Call<'_>) -> Result<(), Status> {
    if call.client().starts_with(ENVOY) {
        let what =
            format!("the name of a client may not begin with `{ENVOY}`: expected another name");
        return Err(Status::permission_denied(what));
    }
    let Call::Ask(request) = call else { return Ok(()) };
    for resource in &request.resources {
        for demand in &resource.demands {
            if demand.band > Band(LAST_BAND) {
                let what = format!("the band of {:?} is above {LAST_BAND}", resource.resource);
                return Err(Status::invalid_argument(what));
            }
            if demand.want.weight > u64::from(LARGEST_WEIGHT) {
                let what =
                    format!("the weight for {:?} is above {LARGEST_WEIGHT}", resource.resource);
                return Err(Status::invalid_argument(what));
            }
        }
    }
    Ok(())
}
