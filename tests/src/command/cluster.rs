//! Three servers with one Redis.

use std::time::Duration;

use sluicegate_tests::servers;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::super::sluicegate::{PATIENCE, Sluicegate};
use super::balancer::Balancer;
use super::users::CAPACITY;

pub(super) struct Cluster {
    pub(super) redis: servers::Server,
    pub(super) servers: Vec<Sluicegate>,
    /// In front of all servers.
    pub(super) balancer: Balancer,
    /// In front of each, at the address that the others know: the port of a server is not known before it runs.
    _ports: Vec<Balancer>,
    _directory: TempDir,
}

const SERVERS: usize = 3;

impl Cluster {
    pub(super) async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("capacity.toml");
        let text = format!(
            "[[capacity]]\nname = \"db\"\nlimit = \"{CAPACITY}/second burst 100\"\nlease = \"10 seconds\"\n\
             [[capacity.envoy]]\ndomain = \"edge\"\nbucket = {{ service = \"db\" }}\n"
        );
        std::fs::write(&file, text).expect("a file");
        let file = file.to_str().expect("text");
        let redis = servers::Server::start();
        let (balancer, mut ports, mut servers) = (Balancer::start().await, Vec::new(), Vec::new());
        for _ in 0..SERVERS {
            let port = Balancer::start().await;
            let (masters, own) = (redis.url(), port.address.to_string());
            let server = Sluicegate::start(&[
                "--capacity",
                file,
                "--masters",
                &masters,
                "--advertise",
                &own,
            ]);
            port.add(server.grpc);
            balancer.add(server.grpc);
            ports.push(port);
            servers.push(server);
        }
        let cluster = Self { redis, servers, balancer, _ports: ports, _directory: directory };
        cluster.any_master().await;
        cluster
    }

    /// The server that says it is the master.
    pub(super) fn master(&self) -> usize {
        self.masters().next().expect("a master")
    }

    fn masters(&self) -> impl Iterator<Item = usize> {
        let servers = self.servers.iter().enumerate();
        servers.filter(|(_, server)| is_master(server)).map(|(at, _)| at)
    }

    pub(super) async fn any_master(&self) {
        self.another_master(usize::MAX).await;
    }

    /// Waits until this server says that it is not the master any more.
    pub(super) async fn steps_down(&self, at: usize) {
        let has_stepped_down = async {
            while is_master(&self.servers[at]) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, has_stepped_down).await.expect("the end of a mastership");
    }

    /// Waits until a server other than this one says that it is the master.
    pub(super) async fn another_master(&self, last: usize) {
        let elected = async {
            while !self.masters().any(|at| at != last) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, elected).await.expect("a master");
    }
}

/// By the last line of its log on the matter.
fn is_master(server: &Sluicegate) -> bool {
    let lines = server.lines();
    let said = lines.iter().rev().filter_map(|line| line["message"].as_str());
    let mut said = said.filter(|said| said.contains("divides the capacity"));
    said.next().is_some_and(|said| said == "this server divides the capacity")
}
