//! Servers of which one divides the capacity.

use std::path::Path;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{Balancer, PATIENCE, Sluicegate};
use crate::servers::Directory;

/// Three servers that share a file of capacity, behind a load balancer that knows nothing of that.
#[derive(Debug)]
pub struct Cluster {
    /// The servers.
    pub servers: Vec<Sluicegate>,
    /// In front of all servers.
    pub balancer: Balancer,
    /// In front of each, at the address that the others know: the port of a server is not known before it runs.
    _ports: Vec<Balancer>,
    _directory: Directory,
}

const SERVERS: usize = 3;

/// A file of Envoy's service that limits nobody.
pub const DESCRIPTORS: &str = "domain: none\ndescriptors: [{ key: user, rate_limit: { unit: year, requests_per_unit: 1 } }]\n";

impl Cluster {
    /// Starts servers of `program` that divide a capacity `db`, of a rate a second and a burst, among leases and
    /// the Envoys of a bucket. `masters` is the URL of their store. Waits until one of them divides it.
    ///
    /// # Panics
    ///
    /// If they do not start, or none is the master within a minute.
    pub async fn start(program: &Path, masters: &str, (capacity, burst): (u64, u64)) -> Self {
        let directory = Directory::make();
        let text = format!(
            "[[capacity]]\nname = \"db\"\nlimit = \"{capacity}/second burst {burst}\"\nlease = \"10 seconds\"\n\
             [[capacity.envoy]]\ndomain = \"edge\"\nbucket = {{ service = \"db\" }}\n"
        );
        let file = directory.path().join("capacity.toml");
        std::fs::write(&file, text).expect("a file");
        let file = file.to_str().expect("text");
        let (balancer, mut ports, mut servers) = (Balancer::start().await, Vec::new(), Vec::new());
        for _ in 0..SERVERS {
            let port = Balancer::start().await;
            let own = port.address.to_string();
            let options = ["--capacity", file, "--masters", masters, "--advertise", &own];
            let server = Sluicegate::start(program, DESCRIPTORS, &options);
            port.add(server.grpc);
            balancer.add(server.grpc);
            ports.push(port);
            servers.push(server);
        }
        let cluster = Self { servers, balancer, _ports: ports, _directory: directory };
        cluster.any_master().await;
        cluster
    }

    /// The server that says it is the master.
    ///
    /// # Panics
    ///
    /// If none does.
    pub fn master(&self) -> usize {
        self.masters().next().expect("a master")
    }

    fn masters(&self) -> impl Iterator<Item = usize> {
        let servers = self.servers.iter().enumerate();
        servers.filter(|(_, server)| is_master(server)).map(|(at, _)| at)
    }

    /// Waits until a server says that it is the master.
    ///
    /// # Panics
    ///
    /// If none does within a minute.
    pub async fn any_master(&self) {
        self.another_master(usize::MAX).await;
    }

    /// Waits until this server says that it is not the master any more.
    ///
    /// # Panics
    ///
    /// If it does not within a minute.
    pub async fn steps_down(&self, at: usize) {
        let has_stepped_down = async {
            while is_master(&self.servers[at]) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, has_stepped_down).await.expect("the end of a mastership");
    }

    /// Waits until a server other than this one says that it is the master.
    ///
    /// # Panics
    ///
    /// If none does within a minute.
    pub async fn another_master(&self, last: usize) {
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
