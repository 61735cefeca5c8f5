//! Requests over time, and by the hour of the week.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::series::Series;

const HOURS: usize = 7 * 24;

const HOUR: u64 = 3_600_000_000;

/// Time zones differ by quarters of an hour.
const QUARTER: u64 = HOUR / 4;

const WEEK: u64 = HOURS as u64 * HOUR;

/// Requests over time.
pub(crate) struct Traffic {
    zone: TimeZone,
    requests: Series,
    refused: Series,
    first: u64,
    last: u64,
    hours: [u64; HOURS],
    hours_refused: [u64; HOURS],
    /// The last quarter of an hour, and its hour of the week.
    quarter: (u64, usize),
}

/// The same for a page.
#[derive(Debug, Default, Serialize)]
pub(crate) struct TrafficContent {
    /// In seconds since the epoch.
    first: u64,
    /// The length of a part.
    seconds: f64,
    requests: Vec<u64>,
    refused: Vec<u64>,
    /// From Monday at midnight.
    hours: Vec<u64>,
    hours_refused: Vec<u64>,
    /// How often the log has each hour of the week.
    covered: Vec<u64>,
    zone: String,
    pub(crate) served_words: &'static str,
    pub(crate) refused_words: &'static str,
}

impl Traffic {
    /// Nothing yet. The hours of the week are those of a time zone.
    pub(crate) fn new(zone: TimeZone) -> Self {
        Self {
            zone,
            requests: Series::from(0),
            refused: Series::from(0),
            first: 0,
            last: 0,
            hours: [0; HOURS],
            hours_refused: [0; HOURS],
            quarter: (u64::MAX, 0),
        }
    }

    /// A request at a time in microseconds. Times do not go back.
    pub(crate) fn add(&mut self, at: u64, is_refused: bool) {
        if self.quarter.0 == u64::MAX {
            // Whole seconds, so that the page shows when it begins.
            self.first = at / 1_000_000 * 1_000_000;
            self.requests = Series::fine(self.first);
            self.refused = Series::fine(self.first);
        }
        self.last = self.last.max(at);
        self.requests.add(at);
        if self.quarter.0 != at / QUARTER {
            self.quarter = (at / QUARTER, self.hour(at));
        }
        let hour = self.quarter.1;
        self.hours[hour] += 1;
        if is_refused {
            self.refused.add(at);
            self.hours_refused[hour] += 1;
        }
    }

    fn hour(&self, at: u64) -> usize {
        let seconds = i64::try_from(at / 1_000_000).unwrap_or(i64::MAX);
        let Ok(time) = Timestamp::from_second(seconds) else { return 0 };
        let time = time.to_zoned(self.zone.clone());
        let day = time.weekday().to_monday_zero_offset();
        usize::try_from(24 * i32::from(day) + i32::from(time.hour())).unwrap_or_default() % HOURS
    }

    /// How often each hour of the week is there from the first to the last request, the first and the last one of them in part.
    fn covered(&self) -> Vec<u64> {
        let weeks = (self.last - self.first) / WEEK;
        let mut covered = vec![weeks; HOURS];
        let rest = self.first + weeks * WEEK;
        let mut before = None;
        for quarter in rest / QUARTER..=self.last / QUARTER {
            let hour = self.hour(quarter * QUARTER);
            if before.replace(hour) != Some(hour) {
                covered[hour] += 1;
            }
        }
        covered
    }

    /// For a page, which calls the two kinds of requests so.
    pub(crate) fn content(
        &self,
        served_words: &'static str,
        refused_words: &'static str,
    ) -> TrafficContent {
        let [requests, refused] = [&self.requests, &self.refused]
            .map(|series| series.clone().until(self.last.max(self.first)));
        TrafficContent {
            first: self.first / 1_000_000,
            seconds: requests.width().as_secs_f64(),
            requests: requests.counts().to_vec(),
            refused: refused.counts().to_vec(),
            hours: self.hours.to_vec(),
            hours_refused: self.hours_refused.to_vec(),
            covered: self.covered(),
            zone: self.zone.iana_name().unwrap_or("UTC").to_owned(),
            served_words,
            refused_words,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Monday, 24 November 2025, 00:00 UTC.
    const MONDAY: u64 = 1_763_942_400_000_000;

    #[test]
    fn hours_are_those_of_the_zone_and_know_how_often_they_came() {
        let zone = TimeZone::get("Asia/Kolkata").expect("a zone");
        for (zone, first) in [(TimeZone::UTC, 0), (zone, 5)] {
            let mut traffic = Traffic::new(zone);
            // Nine days, a request each half an hour.
            for half in 0..2 * 24 * 9 {
                traffic.add(MONDAY + half * HOUR / 2, half % 3 == 0);
            }
            let content = traffic.content("", "");
            assert_eq!(content.hours.iter().sum::<u64>(), 432);
            assert_eq!(content.hours_refused.iter().sum::<u64>(), 144);
            assert_eq!(content.requests.iter().sum::<u64>(), 432);
            assert_eq!(content.requests.len(), content.refused.len());
            assert!(content.requests.len() <= 240);
            // Two days came twice.
            assert_eq!(content.covered[first + 1], 2);
            assert_eq!(content.covered[first + 60], 1);
            assert!(content.covered.iter().sum::<u64>().abs_diff(216) <= 1);
        }
    }

    #[test]
    fn a_log_of_one_request_and_of_three_centuries_is_one() {
        let mut traffic = Traffic::new(TimeZone::UTC);
        assert_eq!(traffic.content("", "").hours.iter().sum::<u64>(), 0);
        traffic.add(MONDAY + 1, true);
        let content = traffic.content("", "");
        assert_eq!((content.requests, content.covered[0], content.covered[1]), (vec![1], 1, 0));
        traffic.add(9_000_000_000_000_000, false);
        let content = traffic.content("", "");
        assert_eq!(content.requests.iter().sum::<u64>(), 2);
        assert_eq!(content.requests.len(), content.refused.len());
        assert!(content.covered[0] > 10_000);
    }
}
