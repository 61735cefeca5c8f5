use super::{Reply, Server, until};

/// A server that copies another until it is promoted.
#[derive(Debug)]
pub struct Replica(Server);

impl Replica {
    /// Starts a replica, and waits until it has the master's data.
    ///
    /// # Panics
    ///
    /// As [`Server::start`] does.
    pub fn of(master: &Server) -> Self {
        let replica = Self(Server::start());
        replica.follow(master);
        replica
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.0
    }

    /// Makes it copy `master` from now on, and waits until it has the data.
    ///
    /// # Panics
    ///
    /// If it refuses, or does not catch up.
    pub fn follow(&self, master: &Server) {
        let port = master.address().port().to_string();
        self.0.cli(["REPLICAOF", "127.0.0.1", &port]).expect("it follows");
        self.get_ready();
    }

    /// Wraps a server that already follows a master, and waits until it has the data.
    pub(super) fn ready(server: Server) -> Self {
        let replica = Self(server);
        replica.get_ready();
        replica
    }

    fn get_ready(&self) {
        until("the replica to have the master's data", || {
            let told = self.0.info("replication").ok()?;
            told.contains("master_link_status:up").then_some(())
        });
    }

    /// Waits until it has everything that was written to the master so far.
    ///
    /// # Panics
    ///
    /// If it does not get it.
    pub fn catch_up(&self, master: &Server) {
        let offset = |server: &Server| match server.cli(["ROLE"]).list().as_slice() {
            [_, Reply::Number(offset), _] => *offset,
            [_, _, _, _, Reply::Number(offset)] => *offset,
            other => panic!("no role: {other:?}"),
        };
        let written = offset(master);
        until("the replica to catch up", || (offset(&self.0) >= written).then_some(()));
    }

    /// Promotes it to a master.
    ///
    /// # Panics
    ///
    /// If it refuses.
    pub fn promote(&self) {
        self.0.cli(["REPLICAOF", "NO", "ONE"]).expect("it becomes a master");
    }
}
