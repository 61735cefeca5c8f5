//! A server that is a client of another one.

use super::{granted, outstanding, root, serve};
use crate::amount::Amount;
use crate::grpc::{AlwaysMaster, CapacityService, GrpcTransport};
use crate::lease::LeaseClient;
use crate::server::Server;
use crate::template::{Template, Templates};

fn child(name: &str, parent: &str) -> CapacityService {
    let template = Template::from_parent("*").lease(std::time::Duration::from_secs(10));
    let template = template.refresh(std::time::Duration::from_millis(100));
    CapacityService::builder(Server::child(name, Templates::new([template]).unwrap()))
        .mastership(AlwaysMaster::new().fence(1).first())
        .parent(GrpcTransport::new([parent]).unwrap())
        .start()
        .unwrap()
}

#[tokio::test]
async fn capacity_comes_down_three_levels_and_goes_back() {
    let root = root();
    let at_root = serve(&root).await;
    let region = child("region", &at_root.url());
    let at_region = serve(&region).await;
    let leaf = child("leaf", &at_region.url());
    let at_leaf = serve(&leaf).await;

    let client = LeaseClient::connect(&at_leaf.url()).unwrap();
    let mut lease = client.resource("db").wants(Amount::units(30)).lease().unwrap();
    granted(&mut lease, 30).await;
    for service in [&root, &region, &leaf] {
        assert_eq!(outstanding(service, "db"), Amount::units(30));
    }
    // No lease outlives the one that it is cut from.
    let left = lease.state().expires.unwrap() - tokio::time::Instant::now();
    assert!(left <= std::time::Duration::from_secs(10), "{left:?}");
}

#[tokio::test]
async fn a_server_needs_a_parent_if_and_only_if_it_leases() {
    let templates = || Templates::new([Template::new("*", Amount::units(1))]).unwrap();
    let start = CapacityService::builder(Server::child("child", templates())).start();
    assert_eq!(
        start.unwrap_err().to_string(),
        "the server leases its capacity from a parent, and none was set"
    );
    let parent = GrpcTransport::new(["http://localhost:1"]).unwrap();
    let start = CapacityService::builder(Server::root("root", templates())).parent(parent).start();
    assert_eq!(
        start.unwrap_err().to_string(),
        "the server has a parent, so make it by `Server::child`"
    );
}
