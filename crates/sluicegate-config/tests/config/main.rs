//! Policies from files: read, checked, followed and changed.

mod borders;
mod checking;
mod deciding;
mod envoy;
mod everything_wrong;
mod keeping;
mod live;
mod meaning;
mod no_allocation;
mod proxying;
mod reading;
mod schema;
mod settling;
mod strangers;
mod throttle;
mod trial;
mod typed;
mod unseen;
#[path = "../../../sluicegate-core/src/condition/geoip/testing.rs"]
mod writer;
