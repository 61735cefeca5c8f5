//! The scripts, and the hashes by which a server knows them.

use std::sync::LazyLock;

/// A Lua script and its SHA-1, by which a server that has run it knows it.
#[derive(Debug)]
pub(crate) struct Script {
    source: &'static str,
    sha: String,
}

impl Script {
    pub(super) fn new(source: &'static str) -> Self {
        Self { source, sha: sha1_smol::Sha1::from(source).digest().to_string() }
    }

    /// The Lua text, for a server that does not know the script.
    pub(crate) fn source(&self) -> &'static str {
        self.source
    }

    /// The SHA-1 of the text, in hexadecimal digits.
    pub(crate) fn sha(&self) -> &str {
        &self.sha
    }
}

/// The number of a script among those of settlements; `None` if it is none of them.
pub(crate) fn settling(script: &Script) -> Option<usize> {
    [&*SETTLE, &*SETTLE_WITH_LOG].into_iter().position(|one| std::ptr::eq(one, script))
}

/// A script made of several files. Functions that follow `rows.lua` find its names as upvalues. A function that
/// looks names up there, not in its own frame, is created in half the time, and every call creates all of them.
macro_rules! joined {
    ($($file:literal),*) => {
        LazyLock::new(|| {
            Script::new(concat!(
                include_str!("rows.lua"),
                "return (function()\n",
                $(include_str!($file),)*
                "end)()\n",
            ))
        })
    };
}

pub(super) static SPEND: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("spend.lua")));
/// For limits without a log: a third fewer functions to create.
pub(super) static TAKE: LazyLock<Script> = joined!("algorithms.lua", "limits.lua", "take.lua");
pub(super) static TAKE_WITH_LOG: LazyLock<Script> =
    joined!("log.lua", "algorithms.lua", "limits.lua", "take.lua");
pub(super) static SETTLE: LazyLock<Script> = joined!("algorithms.lua", "settle.lua");
pub(super) static SETTLE_WITH_LOG: LazyLock<Script> =
    joined!("log.lua", "algorithms.lua", "settle.lua");
pub(super) static LEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lease.lua")));
pub(super) static LEASE_CARRIED: LazyLock<Script> = joined!("algorithms.lua", "lease_carried.lua");
pub(super) static RENEW: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("renew.lua")));
#[cfg(any(feature = "mastership", test))]
pub(super) static MASTER: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("master.lua")));
pub(super) static FLEET: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("fleet.lua")));
