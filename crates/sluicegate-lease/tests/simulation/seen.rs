//! What is seen of a simulated world.

use std::fmt::Write as _;

/// What has been seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// How often the sum of all leases was above the capacity.
    pub(crate) over_grants: u64,
    /// The largest sum of all leases.
    pub(crate) largest: f64,
    /// One each second.
    pub(crate) samples: Vec<Sample>,
    pub(crate) happened: Happened,
}

/// One moment, in units of capacity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// What is wanted, at most the capacity.
    pub(crate) could: f64,
    pub(crate) leased: f64,
    /// What is both leased and wanted.
    pub(crate) used: f64,
    /// What clients lack to their fair shares.
    pub(crate) short: f64,
}

/// How often something happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Happened {
    /// Requests that arrived at servers.
    pub(crate) requests: u64,
    /// Messages that were lost, came twice, came very late, or did not get through a cut.
    pub(crate) lost: u64,
    pub(crate) twice: u64,
    pub(crate) late: u64,
    pub(crate) cut: u64,
    /// Messages that overtook one between the same two.
    pub(crate) overtaken: u64,
    /// Masters that were lost, and new ones.
    pub(crate) crashed: u64,
    pub(crate) elected: u64,
}

impl Seen {
    /// What was used, of what could have been used, after the first `skip` seconds.
    pub(crate) fn usage(&self, skip: usize) -> f64 {
        let samples = self.samples.iter().skip(skip);
        let (could, did) =
            samples.fold((0.0, 0.0), |sum, sample| (sum.0 + sample.could, sum.1 + sample.used));
        did / could
    }

    /// How many seconds after `since` clients lack less than `part` of what could be used, for the first time.
    pub(crate) fn fair_after(&self, since: usize, part: f64) -> Option<usize> {
        let mut after = self.samples.iter().skip(since);
        after.position(|sample| sample.short < part * sample.could)
    }

    /// How many seconds after `since` this part of what could be used is used, for the first time.
    pub(crate) fn used_after(&self, since: usize, part: f64) -> Option<usize> {
        let mut after = self.samples.iter().skip(since);
        after.position(|sample| sample.used >= part * sample.could)
    }

    /// The samples, as lines of a table.
    pub(crate) fn csv(&self) -> String {
        let mut csv = String::from("second,could be used,leased,used,short of fair shares\n");
        for (second, sample) in (1..).zip(&self.samples) {
            let Sample { could, leased, used, short } = sample;
            writeln!(csv, "{second},{could:.3},{leased:.3},{used:.3},{short:.3}")
                .expect("a string grows");
        }
        csv
    }
}
