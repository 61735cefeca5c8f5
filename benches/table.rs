//! The table: from a key to a decision, with clock, hash, row and step, compared with the floor, governor, and every
//! other limiter that can be called without HTTP.
//!
//! Unless the title says otherwise, every request is admitted and nothing recovers meanwhile, so each request finds
//! and writes a row. Ratios are of turns in the same round. The short form takes about four minutes. `--full` gives
//! every row two or three times as many rounds, and the rivals more rows.

use std::net::IpAddr;

use sluicegate_axum::Memory;
use sluicegate_benches::direct::{
    Bucket, Course, Direct, Entrant, Governor, GovernorDirect, GovernorFoldhash, LeakyBucket,
    Limitador, Nothing, Population, RateNet, RateNetCoarse, RateNetDirect, RateNetDirectCoarse,
    Ratelimit, RatioOf, Sluicegate, SluicegateStore, Throttlecrab, TokioRateLimit, Verdict, notes,
};
use sluicegate_benches::floor::Floor;
use sluicegate_benches::keys::{Arrivals, Key};
use sluicegate_benches::{Figure, Rounds, Sheets};

fn main() {
    let course = Course::from_args();
    let mut sheets = Sheets::default();
    keys_alone(&course, &mut sheets);
    admitted::<u64>(&course, &mut sheets);
    admitted::<IpAddr>(&course, &mut sheets);
    admitted::<String>(&course, &mut sheets);
    refused(&course, &mut sheets);
    one_for_all(&course, &mut sheets);
    rivals(&course, &mut sheets, "The rivals", &populations(&course));
    rivals(&course, &mut sheets, "The rivals elsewhere", &elsewhere(&course));
    sheets.note("The table, each key as likely, 1 thread, ns", notes::FIELD);
    sheets.note("One limit for all, ns", notes::UNKEYED);
    sheets.note("The rivals, ns", notes::RIVALS);
    sheets.print(&course.turns);
}

/// The part that all times have in common.
fn keys_alone(course: &Course, sheets: &mut Sheets) {
    const TITLE: &str = "The keys alone, ns";
    const COLUMNS: [&str; 4] = ["drawn", u64::NAME, IpAddr::NAME, String::NAME];
    let largest = course.populations.last().filter(|_| course.turns.wants(TITLE));
    let arrivals = largest.map(|all| [("each as likely", &all.uniform), ("Zipf", &all.zipf)]);
    for (name, arrivals) in arrivals.into_iter().flatten() {
        let contenders = vec![
            Direct::<u64>::contender(&Nothing, 1, arrivals, Verdict::Admitted),
            Direct::<IpAddr>::contender(&Nothing, 1, arrivals, Verdict::Admitted),
            Direct::<String>::contender(&Nothing, 1, arrivals, Verdict::Admitted),
        ];
        let rounds = course.turns.rounds(contenders, course.pace(1));
        sheets.row(TITLE, &COLUMNS, name, &rounds.figures());
    }
}

/// All populations, both distributions, one thread and two. The filled limiters serve four rows.
fn admitted<K: Key>(course: &Course, sheets: &mut Sheets) {
    const COLUMNS: [&str; 6] = [
        "keys",
        "floor",
        "sluicegate `Limiter`",
        "sluicegate `Store`",
        "governor",
        "governor, foldhash",
    ];
    const RATIOS: [RatioOf; 4] = [
        ("`Limiter` ÷ floor", 1, 0),
        ("`Store` ÷ floor", 2, 0),
        ("governor ÷ `Limiter`", 3, 1),
        ("governor, foldhash ÷ `Limiter`", 4, 1),
    ];
    let rows = [(false, 1), (false, 2), (true, 1), (true, 2)].map(|(is_zipf, threads)| {
        let drawn = if is_zipf { "Zipf" } else { "each key as likely" };
        (is_zipf, threads, format!("The table, {drawn}, {}", on(threads)))
    });
    if !rows.iter().any(|(.., title)| course.wants(title)) {
        return;
    }
    for Population { keys, uniform, zipf } in &course.populations {
        let name = format!("{keys} × {}", K::NAME);
        course.say(&format!("{name}, admitted"));
        // One key has no distribution.
        let rows = || rows.iter().filter(|(is_zipf, ..)| !is_zipf || *keys > 1);
        let held: Vec<_> = rows()
            .map(|(is_zipf, threads, _)| (*threads, if *is_zipf { zipf } else { uniform }))
            .collect();
        let bucket = Bucket::plenty(*keys);
        let contest = course.contest(*keys, &held, || {
            let store = Memory::with_capacity(*keys as usize);
            vec![
                enter(Floor::new(bucket.interval, bucket.burst, *keys)),
                enter(Sluicegate::over(bucket, store.clone())),
                enter(SluicegateStore::over(bucket, store)),
                enter(Governor::<K>::new(bucket)),
                enter(GovernorFoldhash::<K>::new(bucket)),
            ]
        });
        for ((.., title), rounds) in rows().zip(&contest) {
            Course::row(sheets, title, &COLUMNS, &RATIOS, &name, rounds);
        }
    }
}

fn enter<K: Key>(limiter: impl Direct<K> + 'static) -> Entrant<K> {
    (Box::new(limiter), Verdict::Admitted)
}

fn refuse<K: Key>(limiter: impl Direct<K> + 'static) -> Entrant<K> {
    (Box::new(limiter), Verdict::Refused)
}

/// Beside those who are admitted.
fn refused(course: &Course, sheets: &mut Sheets) {
    const COLUMNS: [&str; 6] = [
        "keys",
        "floor, refused",
        "sluicegate, admitted",
        "sluicegate, refused",
        "governor, admitted",
        "governor, refused",
    ];
    const RATIOS: [RatioOf; 3] = [
        ("sluicegate, refused ÷ admitted", 2, 1),
        ("governor, refused ÷ admitted", 4, 3),
        ("sluicegate ÷ floor, refused", 2, 0),
    ];
    let titles = [1, 2].map(|threads| format!("Refused, {}", on(threads)));
    if !titles.iter().any(|title| course.wants(title)) {
        return;
    }
    for Population { keys, uniform, .. } in &course.populations {
        if *keys > 1_000_000 {
            continue;
        }
        let name = format!("{keys} × {}", u64::NAME);
        course.say(&format!("{name}, refused"));
        let (plenty, scarce) = (Bucket::plenty(*keys), Bucket::SCARCE);
        let contest = course.contest::<u64>(*keys, &[(1, uniform), (2, uniform)], || {
            vec![
                refuse(Floor::new(scarce.interval, scarce.burst, *keys)),
                enter(Sluicegate::new(plenty, *keys)),
                refuse(Sluicegate::new(scarce, *keys)),
                enter(Governor::new(plenty)),
                refuse(Governor::new(scarce)),
            ]
        });
        for (title, rounds) in titles.iter().zip(&contest) {
            Course::row(sheets, title, &COLUMNS, &RATIOS, &name, rounds);
        }
    }
}

/// One limit for all clients, compared with limiters without keys.
fn one_for_all(course: &Course, sheets: &mut Sheets) {
    const TITLE: &str = "One limit for all";
    if !course.wants(TITLE) {
        return;
    }
    const NAMES: [&str; 8] = [
        "sluicegate",
        "floor",
        "governor, direct",
        "rate-net, direct",
        "rate-net, direct, coarse clock",
        "leaky-bucket",
        "ratelimit",
        // Has to be the last: it takes no part on two threads.
        "leaky-bucket, not fair",
    ];
    let (bucket, always) = (Bucket::plenty(1), Arrivals::uniform(1));
    let field = || {
        vec![
            enter(Sluicegate::new(bucket, 1)),
            enter(Floor::new(bucket.interval, bucket.burst, 1)),
            enter(GovernorDirect::new(bucket)),
            enter(RateNetDirect::new(bucket)),
            enter(RateNetDirectCoarse::new(bucket)),
            enter(LeakyBucket::new(bucket)),
            enter(Ratelimit::new(bucket)),
        ]
    };
    let on_one_thread =
        || field().into_iter().chain([enter(LeakyBucket::unfair(bucket))]).collect();
    let mut rounds = course.contest::<()>(1, &[(1, &always)], on_one_thread);
    rounds.extend(course.contest::<()>(1, &[(2, &always)], field));
    for (i, name) in NAMES.iter().enumerate() {
        let cells = |cell: &dyn Fn(&Rounds) -> String| -> Vec<String> {
            let competes = |row: usize| row == 0 || i + 1 < NAMES.len();
            let rows = rounds.iter().enumerate();
            rows.map(|(row, rounds)| if competes(row) { cell(rounds) } else { "–".to_owned() })
                .collect()
        };
        let figures = cells(&|rounds| rounds.figure(i).to_string());
        let ratios = cells(&|rounds| rounds.ratio(0, i).to_string());
        let columns = ["limiter", "1 thread", "2 threads"];
        sheets.row(&format!("{TITLE}, ns"), &columns, name, &figures);
        let columns = ["sluicegate ÷", "1 thread", "2 threads"];
        sheets.row(&format!("{TITLE}, ratios"), &columns, name, &ratios);
    }
}

/// A column of the rivals.
struct Case {
    name: String,
    keys: u64,
    threads: usize,
    is_text: bool,
    arrivals: Arrivals,
    verdict: Verdict,
    /// limitador takes a minute or two to add ten million keys and to forget them, and ten seconds for a million.
    without_limitador: bool,
}

/// Every other limiter, each in its own rounds with sluicegate: all of them at once do not fit the memory of a small
/// machine.
fn rivals(course: &Course, sheets: &mut Sheets, title: &str, cases: &[Case]) {
    let (times, ratios) = (format!("{title}, ns"), format!("{title} ÷ sluicegate, ratios"));
    if ![&times, &ratios].iter().any(|title| course.turns.wants(title)) {
        return;
    }
    let duels: Vec<_> = cases
        .iter()
        .map(|case| {
            course.say(&format!("{title}, {}", case.name));
            if case.is_text { duels::<String>(course, case) } else { duels::<u64>(course, case) }
        })
        .collect();
    let columns: Vec<&str> =
        std::iter::once("limiter").chain(cases.iter().map(|case| &*case.name)).collect();
    let sluicegate: Vec<Figure> =
        duels.iter().filter_map(|duels| Some(duels[0].as_ref()?.figure(0))).collect();
    sheets.row(&times, &columns, "sluicegate", &sluicegate);
    for (i, name) in RIVALS.iter().enumerate() {
        let cells = |cell: fn(&Rounds) -> String| -> Vec<String> {
            let cell = |duels: &Vec<Option<Rounds>>| duels[i].as_ref().map(cell);
            duels.iter().map(|duels| cell(duels).unwrap_or_else(|| "–".to_owned())).collect()
        };
        let figures = cells(|rounds| rounds.figure(1).to_string());
        sheets.row(&times, &columns, name, &figures);
        let cells = cells(|rounds| rounds.ratio(1, 0).to_string());
        sheets.row(&ratios, &columns, name, &cells);
    }
}

const RIVALS: [&str; 5] =
    ["rate-net", "rate-net, coarse clock", "throttlecrab", "tokio-rate-limit", "limitador"];

type Maker<K> = fn(Bucket, u64) -> Box<dyn Direct<K>>;

/// With each of `RIVALS`, if it takes part.
fn duels<K: Key>(course: &Course, case: &Case) -> Vec<Option<Rounds>>
where
    RateNet: Direct<K>,
    RateNetCoarse: Direct<K>,
{
    let &Case { keys, threads, verdict, .. } = case;
    let bucket = match verdict {
        Verdict::Refused => Bucket::SCARCE,
        _ => Bucket::plenty(keys),
    };
    let makers: [Option<Maker<K>>; RIVALS.len()] = [
        Some(|bucket, keys| Box::new(RateNet::new(bucket, keys))),
        Some(|bucket, keys| Box::new(RateNetCoarse::new(bucket, keys))),
        Some(|bucket, keys| Box::new(Throttlecrab::new(bucket, keys))),
        Some(|bucket, _| Box::new(TokioRateLimit::new(bucket))),
        match case.without_limitador {
            true => None,
            false => Some(|bucket, keys| Box::new(Limitador::new(bucket, keys))),
        },
    ];
    let duel = |make: Maker<K>| {
        let mut contest = course.contest(keys, &[(threads, &case.arrivals)], || {
            vec![(Box::new(Sluicegate::new(bucket, keys)), verdict), (make(bucket, keys), verdict)]
        });
        contest.remove(0)
    };
    makers.into_iter().map(|make| make.map(duel)).collect()
}

fn populations(course: &Course) -> Vec<Case> {
    let case = |all: &Population| Case {
        without_limitador: all.keys > 1_000_000 && !course.turns.is_full(),
        ..Case::of(all.keys, "`u64`", &all.uniform)
    };
    course.populations.iter().map(case).collect()
}

/// Some of the other rows that the floor and governor have; all of them in the long form.
fn elsewhere(course: &Course) -> Vec<Case> {
    let mut cases = Vec::new();
    for &Population { keys, ref uniform, ref zipf } in &course.populations {
        let some = |few: &[u64]| course.turns.is_full() || few.contains(&keys);
        if some(&[1, 1_000]) {
            cases.push(Case { threads: 2, ..Case::of(keys, "`u64`, 2 threads", uniform) });
        }
        if some(&[1_000]) && keys <= 1_000_000 {
            let verdict = Verdict::Refused;
            cases.push(Case { verdict, ..Case::of(keys, "`u64`, refused", uniform) });
        }
        if some(&[1_000_000]) && keys > 1 {
            cases.push(Case::of(keys, "`u64`, Zipf", zipf));
        }
        if some(&[1_000, 1_000_000]) {
            cases.push(Case { is_text: true, ..Case::of(keys, String::NAME, uniform) });
        }
    }
    cases
}

impl Case {
    fn of(keys: u64, name: &str, arrivals: &Arrivals) -> Self {
        Self {
            name: format!("{keys} × {name}"),
            keys,
            threads: 1,
            is_text: false,
            arrivals: arrivals.clone(),
            verdict: Verdict::Admitted,
            without_limitador: keys > 100_000,
        }
    }
}

fn on(threads: usize) -> &'static str {
    if threads == 1 { "1 thread" } else { "2 threads" }
}
