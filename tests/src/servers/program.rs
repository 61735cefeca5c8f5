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
    /// `postgres`, which these tests need, and `initdb` beside it.
    Postgres,
}

impl Program {
    /// Its file, if it is installed.
    pub fn find(self) -> Option<PathBuf> {
        let path = env::var_os("PATH").unwrap_or_default();
        // Debian has a directory for each version of PostgreSQL.
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let versions = versions.map(|version| version.path().join("bin"));
        let directories = env::split_paths(&path).chain([PathBuf::from(TOOLS)]).chain(versions);
        let directories = directories.filter(|directory| {
            // `initdb` is beside the program itself, and not beside a link to it.
            self != Self::Postgres || is_file(&directory.join("initdb"))
        });
        { directories }.map(|directory| directory.join(self.name())).find(|file| is_file(file))
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
            Self::Postgres => "postgres",
        }
    }
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}
