//! Installs the servers that tests start, if a machine lacks them.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::step::{Failure, Step, root};
use crate::tools::TOOLS;

/// A server and its names.
struct Server {
    program: &'static str,
    /// The same program under its name in `tools`; its own name if that is the package of the server.
    twin: &'static str,
    /// The Debian and Ubuntu package of its tools. The package of the server would start it as a service, now and at
    /// every boot.
    tools: &'static str,
    /// The Homebrew formula, which starts nothing; `None` if it conflicts with another of these.
    brew: Option<&'static str>,
    needed: bool,
}

const REDIS: Server = Server {
    program: "redis-server",
    twin: "redis-check-rdb",
    tools: "redis-tools",
    brew: Some("redis"),
    needed: true,
};

const VALKEY: Server = Server {
    program: "valkey-server",
    twin: "valkey-check-rdb",
    tools: "valkey-tools",
    brew: None,
    needed: false,
};

/// Its programs are in a directory of their version, which is not on the PATH.
const POSTGRES: Server = Server {
    program: "postgres",
    twin: "postgres",
    tools: "postgresql",
    brew: Some("postgresql"),
    needed: true,
};

/// Installs what is missing, if possible. The tests run even if something stays missing:
/// those that need it say so.
pub(crate) fn provide() {
    let as_root = user_is_root();
    for server in [REDIS, VALKEY, POSTGRES] {
        let way = server.way(|program| find(program).is_some(), as_root);
        if let Err(Failure(why)) = server.take(way) {
            eprintln!("\n{}", server.advice(&why));
        }
    }
}

/// Installs what is missing, if possible, and lets a command find it.
pub(crate) fn provide_for(command: &mut Command) {
    provide();
    let_find(command);
}

/// Lets a command find what is installed in this repository.
pub(crate) fn let_find(command: &mut Command) {
    if bin().is_dir()
        && let Ok(path) = env::join_paths(directories())
    {
        command.env("PATH", path);
    }
}

/// How to get a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It is installed.
    Have,
    /// It is installed under its other name.
    Link,
    /// With apt-get, with or without sudo.
    Apt { sudo: bool },
    /// With Homebrew.
    Brew(&'static str),
    /// By hand.
    Ask,
}

impl Server {
    fn way(&self, has: impl Fn(&str) -> bool, as_root: bool) -> Way {
        match self.brew {
            _ if has(self.program) => Way::Have,
            _ if has(self.twin) => Way::Link,
            _ if has("apt-get") && (as_root || has("sudo")) => Way::Apt { sudo: !as_root },
            Some(package) if has("brew") => Way::Brew(package),
            _ => Way::Ask,
        }
    }

    fn take(&self, way: Way) -> Result<(), Failure> {
        match way {
            Way::Have => Ok(()),
            Way::Link => self.link(),
            Way::Apt { sudo } => self.install(sudo),
            Way::Brew(package) => {
                let mut command = Command::new("brew");
                command.args(["install", package]);
                self.step(command).fetch()
            }
            Way::Ask if self.needed => Err(Failure("nothing here can install it".to_owned())),
            Way::Ask => Ok(()),
        }
    }

    fn install(&self, sudo: bool) -> Result<(), Failure> {
        if self.needed {
            // The package lists of a fresh machine are empty. Old lists are fine.
            if let Err(failure) = self.step(apt_get(sudo, &["update"])).fetch() {
                eprintln!("{failure}");
            }
        } else if !packaged(self.tools) {
            return Ok(());
        }
        let words = ["install", "--yes", "--no-install-recommends", self.tools];
        self.step(apt_get(sudo, &words)).fetch()?;
        self.link()
    }

    /// Links the program into this repository's tools, under the name of the server.
    fn link(&self) -> Result<(), Failure> {
        let Self { program, twin, tools, .. } = self;
        let Some(file) = find(twin) else {
            return Err(Failure(format!("the package {tools} has no `{twin}`")));
        };
        if twin == program {
            return Ok(());
        }
        let link = bin().join(program);
        eprintln!("\n==> {program} is missing: {} is {}", link.display(), file.display());
        let made = fs::create_dir_all(bin()).and_then(|()| match fs::remove_file(&link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => symlink(file, &link),
        });
        made.map_err(|error| Failure::at(&link, &error))
    }

    fn step(&self, command: Command) -> Step {
        Step::new(format!("{} is missing, installing it", self.program), command)
    }

    fn advice(&self, why: &str) -> String {
        let Self { program, twin, tools, .. } = self;
        let package = if twin == program { tools } else { program };
        let then = if self.needed { "Tests that need it will fail" } else { "No test needs it" };
        format!(
            "{program} is missing, and could not be installed: {why}. {then}. Get it with `apt-get \
             install {package}` as root, with Homebrew, or with whatever installs packages here."
        )
    }
}

/// `sudo` may ask for a password itself. There are no other questions. Another apt-get is waited for, such as that of the
/// machine's own updates.
pub(crate) fn apt_get(sudo: bool, words: &[&str]) -> Command {
    let mut command = Command::new(if sudo { "sudo" } else { "apt-get" });
    if sudo {
        command.arg("apt-get");
    }
    command.args(["--quiet", "-o", "DPkg::Lock::Timeout=300"]).args(words).stdin(Stdio::null());
    command
}

/// Whether apt knows a package of this name.
fn packaged(name: &str) -> bool {
    let mut command = Command::new("apt-cache");
    command.args(["show", name]).stderr(Stdio::null());
    command.output().is_ok_and(|output| !output.stdout.is_empty())
}

pub(crate) fn user_is_root() -> bool {
    let mut command = Command::new("id");
    command.arg("-u");
    command.output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

pub(crate) fn find(program: &str) -> Option<PathBuf> {
    directories().map(|directory| directory.join(program)).find(|file| file.is_file())
}

/// Where programs are looked for.
fn directories() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<_> = env::split_paths(&path).collect();
    directories.into_iter().chain([bin()]).chain(postgres_directories())
}

/// Where Debian puts the programs of each version of PostgreSQL.
fn postgres_directories() -> impl Iterator<Item = PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin"))
}

/// Where programs of this repository's own are.
pub(crate) fn bin() -> PathBuf {
    root().join(TOOLS).join("bin")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(server: &Server, programs: &[&str], as_root: bool) -> Way {
        server.way(|program| programs.contains(&program), as_root)
    }

    #[test]
    fn what_is_there_is_not_installed() {
        assert_eq!(way(&REDIS, &["redis-server", "apt-get", "sudo"], false), Way::Have);
        assert_eq!(way(&REDIS, &["redis-check-rdb", "apt-get"], true), Way::Link);
        assert_eq!(way(&VALKEY, &["valkey-server"], false), Way::Have);
    }

    #[test]
    fn debian_installs_for_root_and_for_whoever_may_become_it() {
        assert_eq!(way(&REDIS, &["apt-get"], true), Way::Apt { sudo: false });
        assert_eq!(way(&REDIS, &["apt-get", "sudo"], true), Way::Apt { sudo: false });
        assert_eq!(way(&REDIS, &["apt-get", "sudo"], false), Way::Apt { sudo: true });
        assert_eq!(way(&REDIS, &["apt-get"], false), Way::Ask);
    }

    #[test]
    fn a_mac_installs_one_of_them() {
        assert_eq!(way(&REDIS, &["brew"], false), Way::Brew("redis"));
        assert_eq!(way(&VALKEY, &["brew"], false), Way::Ask);
        assert_eq!(way(&POSTGRES, &["brew"], false), Way::Brew("postgresql"));
    }

    #[test]
    fn where_nothing_installs_it_somebody_is_told_of_what_is_needed_only() {
        assert_eq!(way(&REDIS, &[], true), Way::Ask);
        let told = REDIS.take(Way::Ask).err().map(|Failure(why)| REDIS.advice(&why));
        let told = told.unwrap_or_default();
        assert!(told.contains("redis-server is missing"), "{told}");
        assert!(told.contains("apt-get install redis-server"), "{told}");
        assert!(POSTGRES.advice("").contains("apt-get install postgresql`"));
        assert!(VALKEY.take(Way::Ask).is_ok());
    }

    #[test]
    fn a_package_of_no_such_name_is_not_there() {
        assert!(!packaged("no-such-package-anywhere"));
    }
}
