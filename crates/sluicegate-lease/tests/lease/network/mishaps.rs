//! One server, and what can go wrong between it and its clients.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sluicegate_lease::client::OnLoss;
use sluicegate_lease::{AlwaysMaster, Amount, CapacityService, GrpcTransport, Server};
use sluicegate_lease::{Template, Templates};
use tokio::time::{advance, sleep};

use super::socket::dial;
use super::world::{World, root};

const CLIENTS: [&str; 4] = ["client-1", "client-2", "client-3", "client-4"];
const SERVER: &[&str] = &["http://server:5555"];
const SECOND: Duration = Duration::from_secs(1);

/// Starts a server with a higher fence each time. The first one has nobody to learn from.
fn reigns(serve: impl Fn(AlwaysMaster) -> CapacityService) -> impl Fn() -> CapacityService {
    let fences = AtomicU32::new(0);
    move || {
        let fence = 1 + fences.fetch_add(1, Ordering::Relaxed);
        let mastership = AlwaysMaster::new().fence(fence);
        serve(if fence == 1 { mastership.first() } else { mastership })
    }
}

/// A server and its clients. The server begins a new reign each time that it starts.
fn world(seed: u64) -> World {
    let mut world = World::new(seed);
    world.server("server", reigns(root));
    for client in CLIENTS {
        world.client(client, SERVER, OnLoss::Stop);
    }
    world
}

#[test]
fn clients_use_everything_and_never_more() {
    let mut world = world(1);
    world.run_until_used(10 * SECOND);
    world.run(60 * SECOND);
    for client in CLIENTS {
        assert_eq!(world.used_by(client), Amount::units(25));
    }
}

#[test]
fn a_client_that_is_cut_off_stops_and_comes_back() {
    let mut world = world(2);
    world.run(20 * SECOND);
    world.sim.partition("client-1", "server");
    world.run(8 * SECOND);
    assert_eq!(world.used_by("client-1"), Amount::units(25), "its lease lasts");
    world.run(12 * SECOND);
    assert_eq!(world.used_by("client-1"), Amount::ZERO);
    // The others have its part.
    world.run_until_used(5 * SECOND);
    world.sim.repair("client-1", "server");
    world.run(30 * SECOND);
    assert_eq!((world.used_by("client-1"), world.used()), (Amount::units(25), Amount::units(100)));
}

#[test]
fn answers_alone_that_are_lost_do_no_harm() {
    let mut world = world(3);
    world.run_until_used(10 * SECOND);
    for round in 0..5 {
        let client = CLIENTS[round % CLIENTS.len()];
        world.sim.partition_oneway("server", client);
        world.run(7 * SECOND);
        world.sim.repair_oneway("server", client);
        world.run(6 * SECOND);
    }
    world.run_until_used(60 * SECOND);
}

#[test]
fn messages_that_are_held_back_do_no_harm() {
    let mut world = world(4);
    world.run_until_used(10 * SECOND);
    for client in CLIENTS {
        world.sim.hold(client, "server");
        world.run(9 * SECOND);
        world.sim.release(client, "server");
        world.run(4 * SECOND);
    }
    world.run_until_used(60 * SECOND);
}

#[test]
fn a_server_that_crashes_and_comes_back_learns_before_it_grants() {
    let mut world = world(5);
    world.run_until_used(10 * SECOND);
    for _ in 0..3 {
        world.sim.crash("server");
        world.run(2 * SECOND);
        world.sim.bounce("server");
        world.run(15 * SECOND);
        world.run_until_used(30 * SECOND);
    }
}

/// A server crashes and comes back. For some seconds only one client reaches it, while the leases of the others last.
fn comes_back_to_one_client(serve: impl Fn(AlwaysMaster) -> CapacityService + 'static) {
    let mut world = World::new(10);
    world.server("server", reigns(serve));
    for client in CLIENTS {
        world.client(client, SERVER, OnLoss::Stop);
    }
    world.run_until_used(20 * SECOND);
    world.sim.crash("server");
    for client in &CLIENTS[1..] {
        world.sim.partition(*client, "server");
    }
    world.sim.bounce("server");
    world.run(6 * SECOND);
    for client in &CLIENTS[1..] {
        world.sim.repair(*client, "server");
    }
    world.run_until_used(60 * SECOND);
}

#[test]
fn a_server_that_comes_back_to_one_client_grants_it_no_more() {
    comes_back_to_one_client(root);
}

/// The check can fail.
#[test]
#[should_panic(expected = "client-1")]
fn a_server_that_comes_back_and_learns_nothing_grants_too_much() {
    comes_back_to_one_client(|mastership| root(mastership.first()));
}

#[test]
fn a_client_that_crashes_leaves_its_part_to_others() {
    let mut world = world(6);
    world.run_until_used(10 * SECOND);
    world.crash_client("client-1");
    world.run_until_used(20 * SECOND);
    world.sim.bounce("client-1");
    world.run(20 * SECOND);
    assert_eq!(world.used_by("client-1"), Amount::units(25));
}

#[test]
fn clients_wait_for_a_server_that_is_not_there_yet() {
    let mut world = World::new(7);
    for client in CLIENTS {
        world.client(client, SERVER, OnLoss::Stop);
    }
    world.server("server", || root(AlwaysMaster::new().fence(1).first()));
    world.sim.crash("server");
    world.run(20 * SECOND);
    assert_eq!(world.used(), Amount::ZERO);
    world.sim.bounce("server");
    world.run_until_used(60 * SECOND);
}

/// Each client in turn is cut off from a server whose clock gains so much in every 700 ms.
fn cut_off_from_a_quick_server(seed: u64, gains: u64) {
    let mut world = World::new(seed);
    world.server("server", move || {
        tokio::spawn(async move {
            loop {
                sleep(Duration::from_millis(700 - gains)).await;
                advance(Duration::from_millis(gains)).await;
            }
        });
        root(AlwaysMaster::new().fence(1).first())
    });
    for client in CLIENTS {
        world.client(client, SERVER, OnLoss::Stop);
    }
    world.run(20 * SECOND);
    for client in CLIENTS {
        world.sim.partition(client, "server");
        world.run(14 * SECOND);
        world.sim.repair(client, "server");
        world.run(3 * SECOND);
    }
    world.run_until_used(60 * SECOND);
}

#[test]
fn a_server_whose_clock_is_quick_takes_nothing_back_too_early() {
    // One part in 70: the server counts leases as longer by one part in 64.
    cut_off_from_a_quick_server(8, 10);
}

/// The check can fail.
#[test]
#[should_panic(expected = "client-1")]
fn a_server_whose_clock_is_much_too_quick_takes_leases_back_too_early() {
    cut_off_from_a_quick_server(8, 350);
}

#[test]
fn a_leaf_that_is_cut_off_from_the_root_lends_no_more_than_its_lease() {
    let mut world = World::new(9);
    world.server("root", || root(AlwaysMaster::new().fence(1).first()));
    for leaf in ["leaf-1", "leaf-2"] {
        let serve = move |mastership| {
            let template = Template::from_parent("*").lease(10 * SECOND).refresh(SECOND);
            let server = Server::child(leaf, Templates::new([template]).unwrap());
            CapacityService::builder(server)
                .mastership(mastership)
                .parent(GrpcTransport::new(["http://root:5555"]).unwrap().dial(dial))
                .start()
                .unwrap()
        };
        world.server(leaf, reigns(serve));
    }
    for (client, leaf) in [
        ("client-1", &["http://leaf-1:5555"]),
        ("client-2", &["http://leaf-1:5555"]),
        ("client-3", &["http://leaf-2:5555"]),
        ("client-4", &["http://leaf-2:5555"]),
    ] {
        world.client(client, leaf, OnLoss::Stop);
    }
    world.run_until_used(20 * SECOND);

    world.sim.partition("leaf-1", "root");
    world.run(20 * SECOND);
    assert_eq!(world.used_by("client-1") + world.used_by("client-2"), Amount::ZERO);
    // The other leaf's clients want 80 of the 100.
    assert!(world.used() >= Amount::units(78), "{}", world.used());
    world.sim.repair("leaf-1", "root");
    world.run_until_used(60 * SECOND);

    world.sim.crash("leaf-2");
    world.run(3 * SECOND);
    world.sim.bounce("leaf-2");
    world.run(10 * SECOND);
    world.run_until_used(60 * SECOND);
}
