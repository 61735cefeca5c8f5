//! The load of the processors, measured by the requests that ask for it.
//!
//! One word keeps the time of the last sample and the processor time that was used by then. A request that
//! finds it older than 100 ms measures, and the first to write has measured for all. There is no thread and
//! no lock.

mod meter;

use std::error::Error;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use self::meter::{Meter, Share};
use crate::clock::Clock;
use crate::condition::{ChosenBy, Condition};
use crate::key::{Missing, View};

/// Holds while this process uses less than a share of the processors.
///
/// The share is that of all processor time that the process could have used over the last interval of at least 100
/// ms: with as many processors as the system lets it use, including quotas of containers if the standard library
/// knows them. The first caller after that measures; there is no thread and no lock. Until 100 ms after the first was
/// made, the process counts as idle. Other processes are not counted.
///
/// It cannot be made on systems other than Linux and macOS.
///
/// ```
/// use sluicegate::{Ip, Limit, when};
/// use sluicegate::condition::Cpu;
///
/// # if cfg!(not(any(target_os = "linux", target_os = "macos"))) { return Ok(()); }
/// let idle = Cpu::below(0.8)?;
/// // Up to ten times as much while there is processor time to spare: one budget, whichever holds.
/// let elastic = when(idle, Limit::per_minute(1_000).named("api"))
///     .otherwise(Limit::per_minute(100).named("api"))
///     .by(Ip::peer());
/// assert!((0.0..=1.0).contains(&idle.share()));
/// # let _ = elastic;
/// # Ok::<(), sluicegate::condition::CpuError>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Cpu {
    process: &'static Process,
    below: Share,
}

impl Cpu {
    /// Holds below this share of all processors: 0.8 is four fifths.
    ///
    /// # Errors
    ///
    /// If `share` is not more than 0 and at most 1, or if the system does not report processor time.
    pub fn below(share: f64) -> Result<Self, CpuError> {
        let below = Share::new(share).ok_or(CpuError::share(share))?;
        let process = Process::start().ok_or(CpuError::system())?;
        Ok(Self { process, below })
    }

    /// The share in use, from 0 to 1, in steps of a ten-thousandth.
    pub fn share(&self) -> f64 {
        self.process.share().into()
    }

    /// Whether less than that share is in use, for callers that have no request.
    #[inline]
    pub fn has_capacity(&self) -> bool {
        self.process.share() < self.below
    }
}

impl<V: View> Condition<V> for Cpu {
    #[inline]
    fn holds(&self, _: &V) -> Result<bool, Missing> {
        Ok(self.has_capacity())
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}

/// The meter of this process. All conditions share it.
#[derive(Debug)]
struct Process {
    clock: Clock,
    meter: Meter,
}

impl Process {
    fn start() -> Option<&'static Self> {
        static PROCESS: OnceLock<Process> = OnceLock::new();
        let used = used()?;
        Some(PROCESS.get_or_init(|| {
            let clock = Clock::machine();
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            let meter = Meter::new(clock.now(), used, processors);
            Self { clock, meter }
        }))
    }

    #[inline]
    fn share(&self) -> Share {
        self.meter.share(self.clock.now(), || used().unwrap_or_default())
    }
}

/// The processor time that this process has used, in all of its threads, in user and in system mode.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn used() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};

    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).ok()
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn used() -> Option<Duration> {
    None
}

/// Why a [`Cpu`] could not be made.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuError(Problem);

#[derive(Debug, Clone, PartialEq)]
enum Problem {
    Share(f64),
    System,
}

impl CpuError {
    const fn share(share: f64) -> Self {
        Self(Problem::Share(share))
    }

    const fn system() -> Self {
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

#[cfg(test)]
mod tests;
