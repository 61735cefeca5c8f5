//! The options that name policy files.

use std::path::PathBuf;

use clap::Args;
use sluicegate_server::{Policies, PoliciesError};

/// Where the policies are.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct PolicyFiles {
    /// A file of Envoy's rate limit service, or a directory of such files. May be given several times.
    #[arg(long, value_name = "PATH")]
    pub(crate) envoy: Vec<PathBuf>,
    /// A file of rules in TOML or JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
}

impl PolicyFiles {
    /// Reads the files.
    pub(crate) fn read(&self) -> Result<Policies, PoliciesError> {
        let mut policies = Policies::new();
        if let Some(rules) = &self.rules {
            policies = policies.rules(rules)?;
        }
        self.envoy.iter().try_fold(policies, Policies::envoy)
    }
}
