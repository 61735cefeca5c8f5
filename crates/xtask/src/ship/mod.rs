//! What users install: a static program, a Debian package, and an image.

mod debian;
mod image;

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::counterparts::program::{self, Program, Source};
use crate::step::{Failure, Step, cargo, root};

/// Where packages are made.
const PLACE: &str = "target/packaging";

/// The largest program that is shipped, in bytes.
const LARGEST: u64 = 20_000_000;

/// Writes the addresses that a program adjusts when it is started in a bitmap: 20 KB instead of 680 KB. Rust 1.93 is the first whose
/// musl reads it. Its programs end at once where it is not read, and this runs them.
const RUSTFLAGS: &str = "-Clink-arg=-Wl,-z,pack-relative-relocs";

/// Compiles C for static programs.
const MUSL: Program = Program { names: &["musl-gcc"], source: Source::Package("musl-tools") };

/// Builds and checks everything, and returns what could not be checked here.
pub(crate) fn build() -> Result<Vec<String>, Failure> {
    if !cfg!(target_os = "linux") {
        return Ok(vec![
            "the static program, the Debian package and the image: Linux builds them".to_owned(),
        ]);
    }
    let program = static_program()?;
    check_size(&program)?;
    check_linkage(&program)?;
    debian::build(&program)?;
    image::build()
}

/// The target, as the Dockerfile names it.
fn target() -> String {
    format!("{ARCH}-unknown-linux-musl")
}

fn static_program() -> Result<PathBuf, Failure> {
    if !MUSL.is_there() {
        program::install(&[&MUSL]);
    }
    let target = target();
    // Fails with what to do if Rust is not from rustup.
    let mut command = Command::new("rustup");
    command.args(["target", "add", &target]).current_dir(root());
    Step::new("the library for static programs", command).run()?;
    let mut command = cargo(["build", "--locked", "--profile", "dist"]);
    command.args(["--target", &target, "--package", "sluicegate-server", "--target-dir", "target"]);
    command.env("RUSTFLAGS", RUSTFLAGS);
    Step::new("static program", command).run()?;
    Ok(root().join(format!("target/{target}/dist/sluicegate")))
}

fn check_size(program: &Path) -> Result<(), Failure> {
    let size = fs::metadata(program).map_err(|error| Failure::at(program, &error))?.len();
    eprintln!("    {:.1} MB", size as f64 / 1e6);
    match size <= LARGEST {
        true => Ok(()),
        false => Err(Failure(format!("the program has {size} bytes, more than {LARGEST}"))),
    }
}

/// A program that asks for libraries does not start in an empty image.
fn check_linkage(program: &Path) -> Result<(), Failure> {
    let mut command = Command::new("ldd");
    command.arg(program).env("LC_ALL", "C");
    let output = command.output().map_err(|error| Failure(format!("ldd: {error}")))?;
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let is_static = said
        .iter()
        .any(|text| text.contains("statically linked") || text.contains("not a dynamic"));
    match is_static {
        true => Ok(()),
        false => Err(Failure(format!("the program is not static: {}", said.join("")))),
    }
}
