//! What clients of leases may say of themselves.

use sluicegate_lease::{Band, Call, Demand};
use tonic::Status;

use super::plan::{Capacities, Capacity};

/// How the names of Envoys begin in the pool. A client with such a name could give their parts away.
pub(super) const ENVOY: &str = "envoy/";

/// The last band that clients may ask in. Bands above it are the server's own.
pub(super) const LAST_BAND: u8 = 100;

/// The largest weight of a client.
pub(super) const LARGEST_WEIGHT: u32 = 1_000_000;

/// Refuses a call that only the server itself may make, or that the file does not allow.
pub(super) fn check(capacities: &Capacities, call: Call<'_>) -> Result<(), Status> {
    if call.client().starts_with(ENVOY) {
        let what =
            format!("the name of a client may not begin with `{ENVOY}`: expected another name");
        return Err(Status::permission_denied(what));
    }
    let Call::Ask(request) = call else { return Ok(()) };
    for resource in &request.resources {
        let capacity = capacities.of(&resource.resource);
        let allowed = allowed(&request.client, &resource.resource, capacity)?;
        for demand in &resource.demands {
            within(demand, &resource.resource, allowed)?;
        }
    }
    Ok(())
}

/// The first band and the largest weight of a client, of which a server of clients may have several.
fn allowed(client: &str, resource: &str, capacity: Option<&Capacity>) -> Result<(u8, u32), Status> {
    let Some(capacity) = capacity.filter(|capacity| !capacity.clients.is_empty()) else {
        // Of what is not in the file, nobody gets anything.
        return Ok((0, LARGEST_WEIGHT));
    };
    let found = capacity.clients.iter().find(|clients| clients.is_for(client));
    let allowed = found.map(|clients| (clients.band, clients.weight));
    allowed.ok_or_else(|| {
        let what =
            format!("{client:?} may not draw on {resource:?}: other clients are named for it");
        Status::permission_denied(what)
    })
}

fn within(
    demand: &Demand,
    resource: &str,
    (first_band, largest_weight): (u8, u32),
) -> Result<(), Status> {
    if demand.band > Band(LAST_BAND) {
        let what = format!("the band of {resource:?} is above {LAST_BAND}");
        return Err(Status::invalid_argument(what));
    }
    if demand.band < Band(first_band) {
        let what = format!("the band of {resource:?} is at least {first_band} for this client");
        return Err(Status::permission_denied(what));
    }
    if demand.want.weight <= u64::from(largest_weight) {
        return Ok(());
    }
    let what = format!("the weight for {resource:?} is above {largest_weight}");
    Err(match largest_weight {
        LARGEST_WEIGHT => Status::invalid_argument(what),
        _ => Status::permission_denied(what),
    })
}

#[cfg(test)]
mod tests {
    use sluicegate_lease::client::{Action, OnLoss, Session};
    use sluicegate_lease::{Amount, Call, Demand};

    use super::super::plan::Capacities;
    use super::check;

    const FILE: &str = "
        [[capacity]]
        name = \"db\"
        limit = \"100/second\"
        [[capacity.client]]
        name = \"api\"
        weight = 3
        [[capacity.client]]
        name = \"batch-*\"
        band = 1
        [[capacity]]
        name = \"mail\"
        limit = \"100/second\"
        [[capacity]]
        name = \"tenants\"
        limit = \"100/second\"
        [[capacity.envoy]]
        domain = \"edge\"
        bucket = { tenant = \"*\" }
        [[capacity.client]]
        name = \"api\"
    ";

    fn asks(client: &str, resource: &str, weight: u32, band: u8) -> Result<(), String> {
        let mut session = Session::new(client, 0, 0);
        session.add(resource, Amount::units(1), OnLoss::Stop);
        let demand = Demand::of(Amount::units(1)).weight(weight).band(band);
        session.set_demands(resource, vec![demand]);
        let Action::Ask(request) = session.poll(0) else { panic!("it asks at once") };
        let capacities = Capacities::read(FILE).expect("capacities");
        check(&capacities, Call::Ask(&request)).map_err(|status| status.message().to_owned())
    }

    #[test]
    fn a_client_has_the_weights_and_the_names_that_the_file_allows() {
        let refused =
            |client, resource, weight, band| asks(client, resource, weight, band).unwrap_err();
        assert_eq!(asks("api", "db", 3, 0), Ok(()));
        assert_eq!(asks("api", "db", 1, 100), Ok(()));
        assert!(refused("api", "db", 4, 0).contains("is above 3"));
        assert_eq!(asks("batch-7", "db", 1, 1), Ok(()));
        assert!(refused("batch-7", "db", 2, 1).contains("is above 1"));
        assert!(refused("batch-7", "db", 1, 0).contains("is at least 1"));
        for stranger in ["api-2", "batch", "x", "API"] {
            let said = refused(stranger, "db", 1, 0);
            assert!(said.contains("may not draw on \"db\""), "{said}");
        }
        // Without a word about clients, everybody may; a part of a capacity has the clients of the whole.
        assert_eq!(asks("x", "mail", 1_000_000, 0), Ok(()));
        assert!(refused("x", "mail", 1_000_001, 0).contains("is above"));
        assert_eq!(asks("api", "tenants/acme", 1, 0), Ok(()));
        assert!(refused("x", "tenants/acme", 1, 0).contains("may not draw on"));
        assert!(refused("envoy/1", "mail", 1, 0).contains("may not begin with"));
        // Of what is not in the file, there is nothing.
        assert_eq!(asks("x", "absent", 1, 0), Ok(()));
    }
}
