//! The options that name policy files.

use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use sluicegate_server::Policies;

/// Where the policies are.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
#[command(next_help_heading = "Policies")]
pub(crate) struct PolicyFiles {
    /// A file of Envoy's rate limit service, or a directory of such files. May be given several times.
    #[arg(long, value_name = "PATH")]
    pub(crate) envoy: Vec<PathBuf>,
    /// A file of rules in TOML or JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    /// A file of capacity in TOML, which Envoys share by the rate limit quota service, and programs by leases on the gRPC
    /// port.
    #[arg(long, value_name = "FILE")]
    pub(crate) capacity: Option<PathBuf>,
}

impl PolicyFiles {
    /// Reads the files. If it `merges`, several files of Envoy's service may have one domain.
    pub(crate) fn read(&self, merges: bool) -> Result<Policies, Box<dyn Error>> {
        let mut policies = Policies::new().merge_domains(merges);
        if let Some(rules) = &self.rules {
            Kind::Rules.expect(rules)?;
            policies = policies.rules(rules)?;
        }
        if let Some(capacity) = &self.capacity {
            Kind::Capacity.expect(capacity)?;
            policies = policies.capacity(capacity)?;
        }
        for path in &self.envoy {
            Kind::Envoy.expect(path)?;
            policies = policies.envoy(path)?;
        }
        Ok(policies)
    }
}

/// What an option names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Rules,
    Envoy,
    Capacity,
}

impl Kind {
    /// Finds a file that was given to the wrong option, by its name. What reads it could only say that its first lines make no
    /// sense.
    ///
    /// # Errors
    ///
    /// A sentence that names the right option.
    pub(crate) fn expect(self, path: &Path) -> Result<(), String> {
        let shown = path.display();
        if self != Self::Envoy && path.is_dir() {
            return Err(format!("{shown}: it is a directory, expected a file"));
        }
        if !path.is_file() {
            return Ok(());
        }
        let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        let is_yaml = matches!(ending, "yaml" | "yml");
        match self {
            Self::Rules if is_yaml => Err(format!(
                "{shown}: files of rules are in TOML or JSON, and their names end in .toml or .json: a file in YAML, of \
                 Envoy's rate limit service, is named by `--envoy`"
            )),
            Self::Rules if !matches!(ending, "toml" | "json") => Err(format!(
                "{shown}: the name of a file of rules has to end in .toml or .json, which says how it is written"
            )),
            Self::Capacity if is_yaml => Err(format!(
                "{shown}: files of capacity are in TOML: a file in YAML, of Envoy's rate limit service, is named by \
                 `--envoy`"
            )),
            Self::Envoy if ending == "toml" => Err(format!(
                "{shown}: files of Envoy's rate limit service are in YAML: rules in TOML are named by `--rules`, and \
                 capacity by `--capacity`"
            )),
            _ => Ok(()),
        }
    }
}
