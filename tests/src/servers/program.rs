use std::env;
use std::path::{Path, PathBuf};

/// Where `cargo xtask test` puts what it installs.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools/bin");

/// A server's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// `redis-server`, which these tests need.
    Redis,
    /// `valkey-server`, which is tested if it is installed.
    Valkey,
}

impl Program {
    /// Its file, if it is installed.
    pub fn find(self) -> Option<PathBuf> {
        let path = env::var_os("PATH").unwrap_or_default();
        let directories = env::split_paths(&path).chain([PathBuf::from(TOOLS)]);
        directories.map(|directory| directory.join(self.name())).find(|file| is_file(file))
    }

    /// Its file.
    ///
    /// # Panics
    ///
    /// If it is not installed. The message says how to get it.
    pub(super) fn file(self) -> PathBuf {
        let name = self.name();
        self.find().unwrap_or_else(|| {
            panic!(
                "`{name}` is neither on the PATH nor in target/tools/bin: `cargo xtask test` installs \
                 it on Debian, Ubuntu and macOS; elsewhere, install it with the system's package \
                 manager"
            )
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Valkey => "valkey-server",
        }
    }
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}
