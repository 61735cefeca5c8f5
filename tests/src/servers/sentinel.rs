use std::fs;
use std::path::Path;

use super::{Program, Replica, Reply, Server, until};

/// A sentinel that watches a master by the name `main`, and promotes a replica when the master is gone.
#[derive(Debug)]
pub struct Sentinel(Server);

impl Sentinel {
    /// Starts a sentinel, and waits until it knows the replica.
    ///
    /// # Panics
    ///
    /// As [`Server::start`] does.
    pub fn watch(master: &Server, replica: &Replica) -> Self {
        let port = master.address().port();
        let prepare = |directory: &Path| {
            let lines = format!(
                "sentinel monitor main 127.0.0.1 {port} 1\n\
                 sentinel down-after-milliseconds main 60000\n\
                 sentinel failover-timeout main 3000\n"
            );
            fs::write(directory.join("sentinel.conf"), lines).expect("the directory is ours");
        };
        let arguments = ["sentinel.conf", "--sentinel", "--bind", "127.0.0.1"];
        let arguments = arguments.map(str::to_owned).to_vec();
        let sentinel = Self(Server::launch(Program::Redis, arguments, prepare));
        let wanted = replica.server().address().port().to_string();
        until("the sentinel to find the replica", || {
            let Reply::List(replicas) = sentinel.0.cli(["SENTINEL", "REPLICAS", "main"]) else {
                return None;
            };
            let named = |replica: &Reply| {
                format!("{replica:?}").contains(&format!("{:?}", wanted.as_bytes()))
            };
            replicas.iter().any(named).then_some(())
        });
        sentinel
    }

    /// Kills the master, which this sentinel watches, so that the replica takes its place.
    pub fn fail_over(&self, master: &Server) {
        // Before, a master that waits for the processor is not replaced.
        let patience = ["SENTINEL", "SET", "main", "down-after-milliseconds", "300"];
        self.0.cli(patience).expect("it is set");
        master.kill();
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.0
    }

    /// The port of the current master.
    ///
    /// # Panics
    ///
    /// If it knows none.
    pub fn master(&self) -> u16 {
        let address = self.0.cli(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"]).list();
        let port = address.into_iter().nth(1).expect("an address and a port").text();
        port.parse().expect("a port is a number")
    }
}
