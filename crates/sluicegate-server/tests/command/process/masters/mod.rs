//! Several servers, of which one divides the capacity, behind a load balancer that knows nothing of that.

mod balancer;
mod cluster;
mod envoy;
mod users;

use std::time::{Duration, Instant};

use self::cluster::Cluster;
use self::users::Users;

/// Longer than the leases of the file, and what servers add to them.
const LEASE: Duration = Duration::from_secs(11);

#[tokio::test(flavor = "multi_thread")]
async fn servers_follow_a_killed_master_and_together_grant_no_more_than_there_is() {
    let mut cluster = Cluster::start().await;
    let users = Users::start(&cluster);
    users.all_have_their_part().await;
    let killed = cluster.master();
    cluster.servers[killed].signal("KILL");
    cluster.servers[killed].ended();
    let since = Instant::now();
    cluster.another_master(killed).await;
    eprintln!("a master again after {:?}", since.elapsed());
    // What the killed one had granted ends in this time.
    users.use_it_for(LEASE).await;
    users.all_have_their_part().await;
    users.never_had_more_than_there_is();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_stops_gives_the_mastership_up_at_once() {
    let cluster = Cluster::start().await;
    let users = Users::start(&cluster);
    users.all_have_their_part().await;
    let stopped = cluster.master();
    cluster.servers[stopped].signal("TERM");
    let since = Instant::now();
    cluster.steps_down(stopped).await;
    cluster.another_master(stopped).await;
    eprintln!("a master again after {:?}", since.elapsed());
    users.use_it_for(LEASE).await;
    users.all_have_their_part().await;
    users.never_had_more_than_there_is();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_stands_still_grants_nothing_when_it_goes_on() {
    let cluster = Cluster::start().await;
    let users = Users::start(&cluster);
    users.all_have_their_part().await;
    let stopped = cluster.master();
    cluster.servers[stopped].signal("STOP");
    let since = Instant::now();
    cluster.another_master(stopped).await;
    eprintln!("a master again after {:?}", since.elapsed());
    // The stopped one has calls and reports from before, and from the load balancer, which still sends some to it.
    users.use_it_for(LEASE).await;
    cluster.servers[stopped].signal("CONT");
    cluster.steps_down(stopped).await;
    users.use_it_for(LEASE).await;
    users.all_have_their_part().await;
    users.never_had_more_than_there_is();
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_divides_while_the_store_is_away_and_one_server_does_afterwards() {
    let cluster = Cluster::start().await;
    let users = Users::start(&cluster);
    users.all_have_their_part().await;
    let before = cluster.master();
    cluster.redis.pause();
    cluster.steps_down(before).await;
    // Leases end, and nobody renews them.
    users.nobody_has_anything().await;
    cluster.redis.resume();
    let since = Instant::now();
    cluster.any_master().await;
    eprintln!("a master again after {:?}", since.elapsed());
    users.all_have_their_part().await;
    users.never_had_more_than_there_is();
}
