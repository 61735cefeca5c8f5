use std::error::Error;
use std::fmt;

/// Why a [`Cpu`](super::Cpu) could not be made.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuError(Problem);

#[derive(Debug, Clone, PartialEq)]
enum Problem {
    Share(f64),
    System,
}

impl CpuError {
    pub(super) const fn share(share: f64) -> Self {
        Self(Problem::Share(share))
    }

    pub(super) const fn system() -> Self {
        Self(Problem::System)
    }

    /// Whether it is the system that does not tell how much processor time was used.
    pub fn is_unsupported(&self) -> bool {
        self.0 == Problem::System
    }
}

impl fmt::Display for CpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Problem::Share(share) => write!(
                f,
                "`{share:?}` is no share of the processors: more than 0 and at most 1, such as 0.8"
            ),
            Problem::System => f.write_str(
                "this system does not tell how much processor time a process has used: \
                 `Cpu` is for Linux and macOS",
            ),
        }
    }
}

impl Error for CpuError {}
