//! A dozen processes share 1,000 requests a second. Each decides in its own memory.
//!
//!     cargo run --example fleet
//!
//! They tell each other by heartbeats in the Redis at $REDIS_URL or at 127.0.0.1:6379; `redis-server` is started if none
//! answers there. Each wants 150 requests a second, together more than there is. One is killed, two more join, and after
//! 20 seconds all of it ends by itself.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::io::IsTerminal;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use sluicegate::store::Share;
use sluicegate::{Limit, Limiter, Memory};
use sluicegate_examples::RedisServer;
use sluicegate_redis::Redis;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep};

type Failure = Box<dyn Error + Send + Sync>;

// Of all processes together.
const LIMIT: Limit = Limit::per_second(1_000).burst(200);
// What each process wants in a second.
const WANTED: usize = 150;
const ROUND: Duration = Duration::from_millis(500);
const SECOND: Duration = Duration::from_secs(1);

// How the program that is started once more knows that it is a member.
const MEMBER: &str = "SLUICEGATE_EXAMPLE_MEMBER";
const URL: &str = "SLUICEGATE_EXAMPLE_URL";

/// What a member reports: its part, and how many requests a second were admitted.
struct Report {
    member: usize,
    part: f64,
    admitted: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let end = match (env::var(MEMBER), env::var(URL)) {
        (Ok(name), Ok(url)) => member(&name, &url).await,
        _ => fleet().await,
    };
    match end {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// One process: sends what its part of the limit admits.
async fn member(fleet: &str, url: &str) -> Result<(), Failure> {
    let redis = Redis::builder().url(url).deadline(Duration::from_millis(200)).build()?;
    let membership = redis.fleet(fleet).round(ROUND).join()?;
    let limiter = Limiter::new(LIMIT).store(Share::new(Memory::new(), membership.fleet()));

    let mut ticks = interval(Duration::from_millis(10));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut admitted, mut since) = (0_u64, Instant::now());
    for tick in 1_usize.. {
        ticks.tick().await;
        for _ in 0..WANTED * tick / 100 - WANTED * (tick - 1) / 100 {
            admitted += u64::from(limiter.take("api").now()?.is_admitted());
        }
        if tick % 100 == 0 {
            let part = membership.fleet().part().map_or(0.0, |part| part.as_f64());
            let a_second = (admitted as f64 / since.elapsed().as_secs_f64()).round() as u64;
            println!("{part} {a_second}");
            (admitted, since) = (0, Instant::now());
        }
    }
    Ok(())
}

/// Starts them, and shows what they do.
async fn fleet() -> Result<(), Failure> {
    let redis = RedisServer::find_or_start().await?;
    // A fleet of this run.
    let name = format!("example-{}", std::process::id());
    let (reports, mut reported) = mpsc::channel(64);
    let mut processes = BTreeMap::new();
    let start = |processes: &mut BTreeMap<usize, Child>, member: usize| {
        let child = start(member, &name, redis.url(), reports.clone())?;
        processes.insert(member, child);
        Ok::<_, Failure>(())
    };
    for member in 1..=12 {
        start(&mut processes, member)?;
    }

    let mut latest = BTreeMap::<usize, Report>::new();
    let mut lines = 0;
    for second in 1..=20 {
        sleep(SECOND).await;
        let event = match second {
            7 => {
                // Not told to anybody: the others notice.
                processes.remove(&3).expect("it was started").start_kill()?;
                "process 3 is killed"
            }
            13 => {
                start(&mut processes, 13)?;
                start(&mut processes, 14)?;
                "processes 13 and 14 are started"
            }
            _ => "",
        };
        latest.retain(|member, _| processes.contains_key(member));
        while let Ok(report) = reported.try_recv() {
            if processes.contains_key(&report.member) {
                latest.insert(report.member, report);
            }
        }
        lines = show(second, event, &latest, lines);
    }
    // Dropped, they are killed.
    Ok(())
}

fn start(
    member: usize,
    fleet: &str,
    url: &str,
    reports: mpsc::Sender<Report>,
) -> Result<Child, Failure> {
    let mut child = Command::new(env::current_exe()?)
        .env(MEMBER, fleet)
        .env(URL, url)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = child.stdout.take().expect("it is piped");
    tokio::spawn(async move {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let Some((part, admitted)) = line.split_once(' ') else { continue };
            let (Ok(part), Ok(admitted)) = (part.parse(), admitted.parse()) else { continue };
            if reports.send(Report { member, part, admitted }).await.is_err() {
                return;
            }
        }
    });
    Ok(child)
}

/// Draws the table over the one before, if this is a terminal; else one line a second.
fn show(second: u32, event: &str, latest: &BTreeMap<usize, Report>, before: usize) -> usize {
    let parts: f64 = latest.values().map(|report| report.part).sum();
    let admitted: u64 = latest.values().map(|report| report.admitted).sum();
    let total = format!(
        "{second:>2} s: {:>2} processes, parts {parts:.3}, {admitted:>4} of 1000 a second admitted  {event}",
        latest.len()
    );
    if !std::io::stdout().is_terminal() {
        println!("{total}");
        return 0;
    }
    if before > 0 {
        // Up to where the table began, and clear what is below.
        print!("\x1b[{before}A\x1b[J");
    }
    println!("{total}");
    for report in latest.values() {
        let bar = "#".repeat(report.admitted as usize / 4);
        println!("  {:>2}  {:.4}  {:>4}  {bar}", report.member, report.part, report.admitted);
    }
    // The lines of seconds in which something happened stay.
    if event.is_empty() { latest.len() + 1 } else { 0 }
}
