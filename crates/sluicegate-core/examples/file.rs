//! What it costs to keep a store in a file: `cargo run --release -p sluicegate-core --features file --example file`.
//!
//! A million keys are written and read, and then a store with a file and one without take turns on all processors. The
//! argument is the folder of the file, the folder for temporary files by default. It takes a minute.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::{Limit, Memory};

const KEYS: usize = 1_000_000;
/// Keys that are in use at a time.
const BUSY: u64 = 200_000;
const LIMIT: Limit = Limit::per_hour(3_600_000).burst(1_000_000);
const PAIRS: usize = 12;
const TURN: Duration = Duration::from_secs(3);
/// How many decisions are made between two that are timed.
const MEASURED: u64 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let file = folder.join(format!("sluicegate-file-{}", std::process::id()));
    let result = write_and_read(&file).and_then(|()| take_turns(&file));
    for suffix in ["", ".lock", ".new"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
    result
}

fn write_and_read(file: &Path) -> Result<(), Box<dyn Error>> {
    for (name, limit) in [
        ("one word", Limit::per_hour(100)),
        ("two words", Limit::fixed_window(1_000, Duration::from_secs(3_600))),
        ("a log", Limit::sliding_log(5, Duration::from_secs(3_600))),
    ] {
        let kept = || Memory::builder().capacity(KEYS).keep_in(file).try_build();
        let store = kept()?;
        store.flush()?;
        for key in 0..KEYS as u64 {
            store.spend(&limit, &KeyBuf::of(key), 1)?;
        }
        let keys = store.len();
        let written = Spent::of(|| store.flush())?;
        println!("{name}: {keys} keys written: {written}");
        // More was appended than there was, so this begins a new file.
        store.flush()?;
        let unchanged = Spent::of(|| store.flush())?;
        println!("{name}: nothing has changed: {unchanged}");
        drop(store);
        let bytes = std::fs::metadata(file)?.len();
        let mut store = None;
        let read = Spent::of(|| kept().map(|kept| store = Some(kept)))?;
        let len = store.as_ref().map_or(0, Memory::len);
        println!("{name}: {len} keys of {bytes} bytes read, and written to a new file: {read}");
        drop(store);
        std::fs::remove_file(file)?;
    }
    Ok(())
}

/// The time of a call, by the clock and of the processor. Other programs use the processor too.
struct Spent {
    elapsed: Duration,
    processor: Duration,
}

impl Spent {
    fn of(run: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<Self> {
        let (started, before) = (Instant::now(), processor_time(ClockId::ThreadCPUTime));
        run()?;
        let processor = processor_time(ClockId::ThreadCPUTime) - before;
        Ok(Self { elapsed: started.elapsed(), processor })
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [processor, elapsed] = [self.processor, self.elapsed].map(|time| time.as_millis());
        write!(f, "{processor} ms of one processor, {elapsed} ms with the disk and other programs")
    }
}

fn processor_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn take_turns(file: &Path) -> Result<(), Box<dyn Error>> {
    let mut sums = [(0_u64, Duration::ZERO, Vec::new()), (0, Duration::ZERO, Vec::new())];
    let (mut ratios, mut writing) = (Vec::new(), 0.0);
    for pair in 0..PAIRS {
        let mut rates = [0.0; 2];
        for turn in 0..2 {
            // The first of a pair is the second of the next.
            let is_kept = (turn + pair) % 2 == 0;
            let builder = Memory::builder().capacity(KEYS);
            let store = if is_kept { builder.keep_in(file).try_build()? } else { builder.build() };
            (0..BUSY).for_each(|key| drop(store.spend(&LIMIT, &KeyBuf::of(key), 1)));
            // That of the thread which writes is part of it.
            let before = processor_time(ClockId::ProcessCPUTime);
            let (count, deciding, mut nanos) = load(&store);
            let time = processor_time(ClockId::ProcessCPUTime) - before;
            rates[usize::from(is_kept)] = count as f64 / time.as_secs_f64();
            if is_kept {
                writing += (time - deciding).as_secs_f64() / time.as_secs_f64() / PAIRS as f64;
            }
            let (sum, times, all) = &mut sums[usize::from(is_kept)];
            *sum += count;
            *times += time;
            all.append(&mut nanos);
            drop(store);
            let _ = std::fs::remove_file(file);
        }
        ratios.push(rates[1] / rates[0]);
    }
    for ((sum, time, nanos), name) in sums.iter_mut().zip(["without a file", "with a file"]) {
        nanos.sort_unstable();
        let at = |share: f64| nanos[(nanos.len() as f64 * share) as usize];
        let rate = *sum as f64 / time.as_secs_f64() / 1e6;
        println!(
            "{name}: {rate:.2} million decisions for each second of a processor; p50 {} ns, p99 {} ns, p99.9 {} ns",
            at(0.5),
            at(0.99),
            at(0.999)
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!("with a file, in each pair: {ratios:.3?} of the decisions without");
    println!("the thread that writes took {:.2} % of the processor time", writing * 100.0);
    Ok(())
}

/// Decides on all processors for one turn. Returns how many decisions there were, the processor time that the threads took,
/// and how long some of the decisions took.
fn load(store: &Memory) -> (u64, Duration, Vec<u64>) {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let until = Instant::now() + TURN;
    let run = |thread: u64| {
        let (mut count, mut nanos) = (0_u64, Vec::new());
        let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ thread;
        loop {
            for _ in 0..MEASURED {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let key = KeyBuf::of(random % BUSY);
                drop(std::hint::black_box(store.spend(&LIMIT, &key, 1)));
            }
            let started = Instant::now();
            drop(std::hint::black_box(store.spend(&LIMIT, &KeyBuf::of(random % BUSY), 1)));
            let took = started.elapsed();
            nanos.push(took.as_nanos() as u64);
            count += MEASURED + 1;
            if started > until {
                return (count, processor_time(ClockId::ThreadCPUTime), nanos);
            }
        }
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        let each = running.into_iter().map(|thread| thread.join().expect("no thread panics"));
        each.fold((0, Duration::ZERO, Vec::new()), |(sum, times, mut all), (count, time, nanos)| {
            all.extend(nanos);
            (sum + count, times + time, all)
        })
    })
}
