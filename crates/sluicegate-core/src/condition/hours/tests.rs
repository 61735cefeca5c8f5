use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::clock::ManualClock;
use crate::condition::Not;
use crate::key::testing::Request;

/// `hours` by a clock that can be set to what is shown in UTC.
struct Watched {
    hours: Hours,
    clock: ManualClock,
}

impl Watched {
    fn new(hours: Hours) -> Self {
        let clock = ManualClock::new();
        Self { hours: hours.clock(&clock), clock }
    }

    fn at(&self, utc: &str) -> bool {
        let instant: Timestamp = utc.parse().expect("an instant");
        let since_epoch = Duration::try_from(instant.as_duration()).expect("after the epoch");
        self.clock.set(since_epoch);
        self.hours.hold_now()
    }

    /// The instants, every quarter of an hour from `utc` on, at which it holds.
    fn quarters(&self, utc: &str, count: usize) -> String {
        let first: Timestamp = utc.parse().expect("an instant");
        let shown = |quarter: usize| {
            let instant = first + Duration::from_secs(900) * quarter as u32;
            if self.at(&instant.to_string()) { '#' } else { '.' }
        };
        (0..count).map(shown).collect()
    }
}

fn berlin(from: &str, to: &str) -> Watched {
    Watched::new(Hours::in_zone("Europe/Berlin").unwrap().between(from, to).unwrap())
}

fn new_york(from: &str, to: &str) -> Watched {
    Watched::new(Hours::in_zone("America/New_York").unwrap().between(from, to).unwrap())
}

#[test]
fn it_begins_with_the_first_minute_and_ends_before_the_last() {
    let office = berlin("09:00", "17:30");
    // Berlin is an hour ahead in winter, two in summer.
    assert!(!office.at("2026-01-12T07:59:59.999999Z"));
    assert!(office.at("2026-01-12T08:00:00Z"));
    assert!(office.at("2026-01-12T16:29:59.999999Z"));
    assert!(!office.at("2026-01-12T16:30:00Z"));
    assert!(office.at("2026-07-13T07:00:00Z"));
    assert!(!office.at("2026-07-13T15:30:00Z"));
}

#[test]
fn over_midnight_it_belongs_to_the_day_on_which_it_begins() {
    let nights = Hours::in_zone("Europe/Berlin").unwrap().between("22:00", "06:00").unwrap();
    let friday = Watched::new(nights.on([Weekday::Friday]));
    // The 9th of January 2026 is a Friday; Berlin is an hour ahead.
    assert!(!friday.at("2026-01-09T04:59:00Z"), "the end of Thursday's night");
    assert!(!friday.at("2026-01-09T20:59:00Z"));
    assert!(friday.at("2026-01-09T21:00:00Z"));
    assert!(friday.at("2026-01-10T04:59:00Z"), "Saturday, in Friday's night");
    assert!(!friday.at("2026-01-10T05:00:00Z"));
    assert!(!friday.at("2026-01-10T21:00:00Z"), "Saturday's night");
}

#[test]
fn the_night_from_sunday_to_monday_is_sundays() {
    let nights = Hours::in_zone("UTC").unwrap().between("22:00", "06:00").unwrap();
    let sunday = Watched::new(nights.on([Weekday::Sunday]));
    assert!(!sunday.at("2026-01-11T05:00:00Z"));
    assert!(sunday.at("2026-01-11T22:00:00Z"));
    assert!(sunday.at("2026-01-12T05:59:00Z"));
    assert!(!sunday.at("2026-01-12T22:00:00Z"));
}

#[test]
fn the_day_is_that_of_the_place() {
    let sunday = Watched::new(Hours::in_zone("America/New_York").unwrap().on([Weekday::Sunday]));
    assert!(!sunday.at("2026-01-11T04:59:00Z"), "Saturday, 23:59 in New York");
    assert!(sunday.at("2026-01-11T05:00:00Z"));
    assert!(sunday.at("2026-01-12T04:59:00Z"), "Sunday, 23:59 in New York");
    assert!(!sunday.at("2026-01-12T05:00:00Z"));
}

#[test]
fn what_no_clock_shows_does_not_come() {
    // At 01:00 UTC clocks in Berlin go from 02:00 to 03:00; in New York at 07:00 UTC.
    assert_eq!(berlin("02:15", "02:45").quarters("2026-03-29T00:00:00Z", 8), "........");
    assert_eq!(berlin("02:30", "04:00").quarters("2026-03-29T00:00:00Z", 12), "....####....");
    assert_eq!(berlin("01:00", "02:30").quarters("2026-03-29T00:00:00Z", 8), "####....");
    assert_eq!(new_york("02:15", "02:45").quarters("2026-03-08T06:00:00Z", 8), "........");
    assert_eq!(new_york("02:30", "04:00").quarters("2026-03-08T06:00:00Z", 12), "....####....");
}

#[test]
fn what_clocks_show_twice_holds_twice() {
    // At 01:00 UTC clocks in Berlin go from 03:00 back to 02:00; in New York at 06:00 UTC, from 02:00.
    assert_eq!(berlin("02:15", "02:45").quarters("2026-10-25T00:00:00Z", 8), ".##..##.");
    assert_eq!(berlin("02:00", "03:00").quarters("2026-10-25T00:00:00Z", 12), "########....");
    assert_eq!(berlin("01:45", "02:30").quarters("2026-10-24T23:45:00Z", 8), "###..##.");
    assert_eq!(new_york("01:15", "01:45").quarters("2026-11-01T05:00:00Z", 8), ".##..##.");
    assert_eq!(new_york("01:00", "02:00").quarters("2026-11-01T05:00:00Z", 12), "########....");
}

#[test]
fn a_night_in_which_clocks_are_changed_is_an_hour_shorter_or_longer() {
    let nights = berlin("22:00", "06:00");
    let quarters = |utc| nights.quarters(utc, 60).matches('#').count();
    assert_eq!(quarters("2026-03-28T18:00:00Z"), 4 * 7);
    assert_eq!(quarters("2026-10-24T18:00:00Z"), 4 * 9);
    assert_eq!(quarters("2026-06-24T18:00:00Z"), 4 * 8);
}

#[test]
fn several_intervals_hold_one_after_the_other() {
    let hours = Hours::in_zone("UTC").unwrap();
    let hours = hours.between("9:00", "9:30").unwrap().between("10:00", "10:15").unwrap();
    assert_eq!(Watched::new(hours).quarters("2026-01-12T08:45:00Z", 8), ".##..#..");
}

#[test]
fn the_end_of_the_day_can_be_written_in_two_ways() {
    for midnight in ["24:00", "00:00"] {
        let hours = Hours::in_zone("UTC").unwrap().between("23:30", midnight).unwrap();
        let monday = Watched::new(hours.on([Weekday::Monday]));
        assert_eq!(monday.quarters("2026-01-12T23:15:00Z", 6), ".##...", "{midnight}");
    }
    let whole = Watched::new(Hours::in_zone("UTC").unwrap().between("00:00", "24:00").unwrap());
    assert_eq!(whole.quarters("2026-01-12T23:30:00Z", 4), "####");
}

#[test]
fn without_an_interval_whole_days_hold_and_without_days_none() {
    let weekend = Hours::in_zone("UTC").unwrap().on([Weekday::Saturday, Weekday::Sunday]);
    let watched = Watched::new(weekend.clone());
    assert!(watched.at("2026-01-10T00:00:00Z") && watched.at("2026-01-11T23:59:00Z"));
    assert!(!watched.at("2026-01-09T23:59:00Z") && !watched.at("2026-01-12T00:00:00Z"));
    assert!(!Watched::new(weekend.on([])).at("2026-01-10T00:00:00Z"));
}

#[test]
fn what_was_seen_is_not_kept_when_something_else_is_said() {
    let always = Watched::new(Hours::in_zone("UTC").unwrap());
    assert!(always.at("2026-01-10T12:00:00Z"));
    assert!(!always.hours.clone().on([Weekday::Monday]).hold_now());
    assert!(!always.hours.clone().between("13:00", "14:00").unwrap().hold_now());
    let later = ManualClock::at(Duration::from_secs(1_768_046_400 + 3_600));
    let other = always.hours.clone().between("13:00", "14:00").unwrap();
    assert!(!other.hold_now() && other.clock(&later).hold_now());
    assert!(always.hours.hold_now());
}

#[test]
fn a_clock_that_is_set_back_is_believed() {
    let office = berlin("09:00", "17:00");
    assert!(office.at("2026-01-12T08:00:00Z"));
    assert!(!office.at("2026-01-12T07:59:00Z"));
    assert!(office.at("2026-01-12T08:00:00Z"));
}

#[test]
fn a_name_that_is_no_time_zone_is_named() {
    for name in ["Europe/Berlinn", "", "Berlin", "+01:00", "Etc/Unknown", "../../etc/passwd"] {
        let error = Hours::in_zone(name).unwrap_err();
        assert_eq!(error.part(), name);
        assert_eq!(
            error.to_string(),
            format!("`{name}` is no time zone: IANA names are such as `Europe/Berlin`")
        );
    }
}

#[test]
fn what_is_no_time_of_day_is_named() {
    let between = |from, to| Hours::in_zone("UTC").unwrap().between(from, to).unwrap_err();
    for text in ["", "9", "25:00", "09:60", "24:01", "9:5", "+9:00", "009:00", "09:00:00", "9 pm"] {
        assert_eq!(between(text, "10:00").part(), text);
        let error = between("10:00", text);
        assert_eq!(error.part(), text);
        assert!(error.to_string().starts_with(&format!("`{text}` is no time of day")), "{error}");
    }
    assert!(between("24:00", "10:00").to_string().contains("that is `00:00`"));
    assert!(between("10:00", "10:00").to_string().contains("a whole day is `00:00` to `24:00`"));
}

#[test]
fn days_read_as_names_or_their_first_letters() {
    for (text, day) in [("mon", Weekday::Monday), ("SUNDAY", Weekday::Sunday)] {
        assert_eq!(text.parse::<Weekday>().unwrap(), day);
    }
    for text in ["", "su", "sund", "Sonntag", "sunday "] {
        let error = text.parse::<Weekday>().unwrap_err();
        assert_eq!(error.part(), text);
        assert!(error.to_string().contains("no day of the week"), "{error}");
    }
}

#[test]
fn it_is_a_condition_on_any_request() {
    let watched = berlin("09:00", "17:00");
    watched.at("2026-01-12T12:00:00Z");
    let request = Request::default();
    assert!(watched.hours.holds(&request).unwrap());
    assert!(!Not(watched.hours).holds(&request).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Against dates and times that are put together without a day of their own.
    #[test]
    fn it_holds_when_an_interval_of_a_chosen_day_lies_around_the_time(
        minute in 0_i64..14 * 24 * 60,
        from in 0_i64..1_440,
        length in 1_i64..1_440,
        days in 0_u8..128,
    ) {
        const DAYS: [Weekday; 7] = [
            Weekday::Monday, Weekday::Tuesday, Weekday::Wednesday, Weekday::Thursday,
            Weekday::Friday, Weekday::Saturday, Weekday::Sunday,
        ];
        // A Monday.
        let start = 1_767_571_200 + 7 * 86_400;
        let chosen = |day: i64| days & 1 << day.rem_euclid(7) != 0;
        let expected = (-1..14).any(|day| {
            let begins = day * 1_440 + from;
            chosen(day) && (begins..begins + length).contains(&minute)
        });

        let text = |minute: i64| format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
        let hours = Hours::in_zone("UTC").unwrap().between(text(from), text(from + length)).unwrap();
        let hours = hours.on((0..7).filter(|&day| chosen(day)).map(|day| DAYS[day as usize]));
        let clock = ManualClock::at(Duration::from_secs((start + minute * 60) as u64));
        prop_assert_eq!(hours.clock(&clock).hold_now(), expected);
    }
}
