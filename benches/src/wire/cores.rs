//! Which process runs on which core.

use std::fs;
use std::path::Path;
use std::process::{self, Command, Stdio};

/// The core of the servers. Only one server is busy at a time. The client has another core.
#[derive(Debug, Clone, Copy)]
pub struct Cores {
    servers: usize,
}

impl Cores {
    /// Binds this process to the client's core. Call it once. Does nothing if only one core is left, or without
    /// `taskset`.
    pub fn bind() -> Option<Self> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let (servers, client) = ends(list)?;
        bind(&process::id().to_string(), client).then_some(Self { servers })
    }

    /// Binds a server that already runs, as the process of that number, to the servers' core.
    pub(crate) fn bind_server(self, process: &str) {
        bind(process, self.servers);
    }

    /// Runs `program` on the servers' core, if there is one.
    pub(super) fn command(cores: Option<Self>, program: &Path) -> Command {
        match cores {
            Some(Self { servers }) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &servers.to_string()]).arg(program);
                command
            }
            None => Command::new(program),
        }
    }
}

/// All threads of a process, where that can be done.
fn bind(process: &str, core: usize) -> bool {
    let mut bind = Command::new("taskset");
    bind.args(["-a", "-c", "-p", &core.to_string(), process]);
    let bound = bind.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    bound.is_ok_and(|status| status.success())
}

/// The first and the last of a list like `0-3,8`, if they are two.
fn ends(list: &str) -> Option<(usize, usize)> {
    let mut numbers = list.trim().split([',', '-']);
    let first = numbers.next()?.parse().ok()?;
    let last = numbers.next_back()?.parse().ok()?;
    Some((first, last))
}

#[cfg(test)]
mod tests {
    use super::ends;

    #[test]
    fn the_first_and_the_last_core_are_apart() {
        assert_eq!(ends("\t0-1"), Some((0, 1)));
        assert_eq!(ends("\t2,4-7,11"), Some((2, 11)));
        assert_eq!(ends("\t3"), None);
    }
}
