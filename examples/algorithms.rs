//! Draws `docs/algorithms.svg`: what each algorithm makes of the same requests.
//!
//! Every mark is an answer of [`Limit::take`], on a clock that is turned by hand.
//!
//!     cargo run --example algorithms

use std::fmt::{self, Write};
use std::fs;
use std::ops::RangeInclusive;
use std::time::Duration;

use sluicegate::Limit;

const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/algorithms.svg");

const PERIOD: Duration = Duration::from_secs(5);

/// All allow one request a second in the long run and five at once.
const ROWS: [(&str, Limit, &str); 6] = [
    (
        "Token bucket",
        Limit::per(5, PERIOD),
        "What is saved may be spent at once; after that, one as each token drops in. The default.",
    ),
    (
        "Token bucket, refilled in steps",
        Limit::per(5, PERIOD).refill(2, Duration::from_secs(2)),
        "The same rate, but two tokens every two seconds: small bursts at each refill.",
    ),
    (
        "Leaky bucket with a queue",
        Limit::leaky_bucket(5, PERIOD).queue(4),
        "Requests wait for their turn and leave evenly, in order of arrival; a full queue refuses.",
    ),
    (
        "Fixed window",
        Limit::fixed_window(5, PERIOD),
        "Five from each border to the next: up to ten within moments, around a border.",
    ),
    (
        "Sliding log",
        Limit::sliding_log(5, PERIOD),
        "Never more than five in any five seconds, exactly: each place is free again after five seconds.",
    ),
    (
        "Sliding window counter",
        Limit::sliding_window(5, PERIOD),
        "Nearly the same with two numbers instead of a log: the last window counts as far as it overlaps.",
    ),
];

/// When the requests arrive, in milliseconds.
fn arrivals() -> Vec<u64> {
    let burst_around_a_border = (3_750..6_250).step_by(250);
    let steady = (11_000..15_000).step_by(1_000);
    let greedy = (15_000..21_500).step_by(250);
    burst_around_a_border.chain(steady).chain(greedy).collect()
}

/// When a request went ahead, in milliseconds, or `None` if it was refused.
type Outcome = (u64, Option<u64>);

fn outcomes(limit: &Limit) -> Vec<Outcome> {
    const EPOCH: u64 = 1_700_000_000_000;
    let mut state = limit.fresh();
    let mut outcome = |arrival| {
        let decision = limit.take(&mut state, (EPOCH + arrival) * 1_000, 1);
        let leave = arrival + decision.wait().as_millis() as u64;
        (arrival, decision.is_admitted().then_some(leave))
    };
    arrivals().into_iter().map(&mut outcome).collect()
}

fn main() -> std::io::Result<()> {
    fs::write(PICTURE, draw().expect("a String takes everything"))?;
    println!("docs/algorithms.svg shows {} algorithms", ROWS.len());
    Ok(())
}

const WIDTH: u32 = 900;
const LEFT: f64 = 24.0;
const SECOND: f64 = 32.0;
const TOP: u32 = 116;
const ROW: u32 = 104;

/// The length of the windows, in milliseconds.
const BORDERS: RangeInclusive<u64> = 0..=25_000;

/// Greys and hues of middle lightness, which can be read on white and on black.
const STYLE: &str = "\
text{font:13px -apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#7a7f87}\
.name{font-size:15px;font-weight:600}\
.text{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px}\
.end{text-anchor:end}.mid{text-anchor:middle}\
path{fill:none;stroke:#7a7f87}\
.grid{stroke-opacity:.5;stroke-dasharray:2 3}\
.lane{stroke-opacity:.3}\
.way{stroke:#3b82f6;stroke-opacity:.75;stroke-width:1.2}\
.went{stroke:#3b82f6;stroke-width:6.4;stroke-linecap:round}\
.came{stroke-width:4;stroke-linecap:round}\
.refused{stroke:#e5534b;stroke-width:1.6}";

fn draw() -> Result<String, fmt::Error> {
    let bottom = TOP + ROW * ROWS.len() as u32;
    let height = bottom + 28;
    let mut svg = String::new();
    write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-labelledby=\"title summary\">\n\
         <title id=\"title\">What each algorithm makes of the same requests</title>\n\
         <desc id=\"summary\">Of {} requests, a burst around a window's border, a steady part and a \
         greedy one.",
        arrivals().len(),
    )?;
    for (name, limit, _) in &ROWS {
        write!(svg, " {name}: {} admitted.", admitted(&outcomes(limit)))?;
    }
    writeln!(svg, "</desc>\n<style>{STYLE}</style>")?;
    legend(&mut svg)?;
    time(&mut svg, bottom)?;
    for (i, (name, limit, caption)) in ROWS.iter().enumerate() {
        row(&mut svg, TOP + ROW * i as u32, name, limit, caption)?;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn admitted(outcomes: &[Outcome]) -> usize {
    outcomes.iter().filter(|(_, leave)| leave.is_some()).count()
}

fn x(millis: u64) -> f64 {
    LEFT + millis as f64 / 1_000.0 * SECOND
}

fn legend(svg: &mut String) -> fmt::Result {
    writeln!(
        svg,
        "<path class=\"came\" d=\"M27 20h.01\"/><text x=\"38\" y=\"24\">arrives</text>\
         <path class=\"refused\" d=\"{}\"/><text x=\"113\" y=\"24\">is refused</text>\
         <path class=\"went\" d=\"M203 20h.01\"/><text x=\"214\" y=\"24\">goes ahead</text>\
         <path class=\"way\" d=\"M312 15L330 25\"/><text x=\"338\" y=\"24\">waits</text>\
         <text x=\"{}\" y=\"24\" class=\"end\">all: one a second, five at once</text>",
        cross(102.0, 20.0),
        WIDTH - 24,
    )
}

/// The phases of the pattern above, the seconds below.
fn time(svg: &mut String, bottom: u32) -> fmt::Result {
    let phases = [(5_000, "a burst around a border"), (12_500, "steady"), (18_250, "greedy")];
    for (middle, phase) in phases {
        writeln!(svg, "<text x=\"{:.1}\" y=\"62\" class=\"mid\">{phase}</text>", x(middle))?;
    }
    let y = 82.0;
    svg.push_str("<path class=\"came\" d=\"");
    for arrival in arrivals() {
        write!(svg, "M{:.1} {y}h.01", x(arrival))?;
    }
    svg.push_str("\"/>\n");
    for border in BORDERS.step_by(5_000) {
        let (x, y, second) = (x(border), bottom + 18, border / 1_000);
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y}\" class=\"mid\">{second} s</text>")?;
    }
    Ok(())
}

fn row(svg: &mut String, top: u32, name: &str, limit: &Limit, caption: &str) -> fmt::Result {
    let outcomes = outcomes(limit);
    let (right, line) = (WIDTH - 24, top + 22);
    writeln!(
        svg,
        "<text x=\"24\" y=\"{line}\"><tspan class=\"name\">{name}</tspan> \
         <tspan dx=\"8\" class=\"text\">{limit}</tspan></text>\
         <text x=\"{right}\" y=\"{line}\" class=\"end\">{} of {} admitted</text>\
         <text x=\"24\" y=\"{}\">{caption}</text>",
        admitted(&outcomes),
        outcomes.len(),
        line + 19,
    )?;
    receipts(svg, top + 62, top + 86, &outcomes)
}

/// Arrivals and refusals at the height of `came`, and requests that go ahead at the height of `went`.
fn receipts(svg: &mut String, came: u32, went: u32, outcomes: &[Outcome]) -> fmt::Result {
    let lane = format!("M24 {went}H{}", WIDTH - 24);
    let [mut grid, mut ways, mut dots, mut crosses] = <[String; 4]>::default();
    for border in BORDERS.step_by(5_000) {
        write!(grid, "M{:.1} {}V{}", x(border), came - 8, went + 8)?;
    }
    for &(arrival, leave) in outcomes {
        if let Some(leave) = leave {
            write!(ways, "M{:.1} {came}L{:.1} {went}", x(arrival), x(leave))?;
            write!(dots, "M{:.1} {went}h.01", x(leave))?;
        } else {
            crosses += &cross(x(arrival), f64::from(came));
        }
    }
    for (class, path) in
        [("lane", lane), ("grid", grid), ("way", ways), ("went", dots), ("refused", crosses)]
    {
        writeln!(svg, "<path class=\"{class}\" d=\"{path}\"/>")?;
    }
    Ok(())
}

fn cross(x: f64, y: f64) -> String {
    format!("M{:.1} {:.1}l5 5m0 -5l-5 5", x - 2.5, y - 2.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_in_the_documentation_is_what_the_code_draws() {
        let drawn = draw().unwrap();
        assert!(drawn.len() < 40_000, "{} bytes", drawn.len());
        let picture = fs::read_to_string(PICTURE).unwrap();
        assert!(picture == drawn, "run `cargo run --example algorithms`");
    }

    #[test]
    fn a_fixed_window_admits_twice_its_count_around_a_border() {
        let around = |limit| {
            let outcomes = outcomes(&limit);
            outcomes.iter().filter(|(arrival, leave)| *arrival < 7_000 && leave.is_some()).count()
        };
        assert_eq!(around(Limit::fixed_window(5, PERIOD)), 10);
        assert_eq!(around(Limit::sliding_log(5, PERIOD)), 5);
    }
}
