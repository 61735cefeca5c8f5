//! Draws the picture of the guide's page on overload: who is answered in time, with a throttle and without, as the load grows.
//!
//! Every point is a simulated server of one core behind the real scheduler, or behind a queue.
//!
//!     cargo run --example overload

use std::fmt::{self, Write};
use std::fs;

use sluicegate_tests::overload::{Contender, Fifo, Report, Throttled, four_classes, run};

const PICTURE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/sluicegate/src/guide/overload.svg");

/// How many times what the server can do.
const LOADS: [f64; 13] = [0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0];

/// Simulated seconds for each point.
const SECONDS: u64 = 60;

const CLASSES: [&str; 4] = ["CRITICAL_PLUS", "CRITICAL", "SHEDDABLE_PLUS", "SHEDDABLE"];

/// A name, a colour, and a part of 1 for each load.
struct Curve {
    name: &'static str,
    colour: &'static str,
    points: Vec<f64>,
}

fn main() -> std::io::Result<()> {
    fs::write(PICTURE, draw().expect("a String takes everything"))?;
    println!("the picture shows {} loads", LOADS.len());
    Ok(())
}

fn reports(contender: impl Fn() -> Box<dyn Contender>) -> Vec<Report> {
    let report = |load| run(&mut *contender(), &mut four_classes(load), SECONDS);
    LOADS.into_iter().map(report).collect()
}

fn all(report: &Report) -> f64 {
    report.served.iter().sum::<u64>() as f64 / report.offered.iter().sum::<u64>() as f64
}

fn without() -> Vec<Curve> {
    let unbounded = reports(|| Box::new(Fifo::unbounded()));
    let bounded = reports(|| Box::new(Fifo::bounded()));
    let curve = |name, colour, reports: &[Report]| {
        let points = reports.iter().map(all).collect();
        Curve { name, colour, points }
    };
    vec![
        curve("a queue without a bound", "#e5534b", &unbounded),
        curve("a queue of 42 requests", "#d9822b", &bounded),
    ]
}

fn with() -> Vec<Curve> {
    const COLOURS: [&str; 4] = ["#3b82f6", "#22a6c9", "#7c6cf0", "#7a7f87"];
    let reports = reports(|| Box::new(Throttled::default()));
    let curve = |class: usize| Curve {
        name: CLASSES[class],
        colour: COLOURS[class],
        points: reports.iter().map(|report| report.goodput(class)).collect(),
    };
    (0..CLASSES.len()).map(curve).collect()
}

const WIDTH: f64 = 900.0;
const PANEL: f64 = 360.0;
const TOP: f64 = 56.0;
const HEIGHT: f64 = 220.0;

/// Greys and hues of middle lightness, which can be read on white and on black.
const STYLE: &str = "\
text{font:13px -apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#7a7f87}\
.name{font-size:15px;font-weight:600}.end{text-anchor:end}.mid{text-anchor:middle}\
path{fill:none;stroke:#7a7f87;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\
.grid{stroke-opacity:.35;stroke-dasharray:2 3;stroke-width:1}";

fn draw() -> Result<String, fmt::Error> {
    let panels =
        [("Without a throttle: every class alike", without()), ("With a throttle", with())];
    let mut svg = String::new();
    let height = TOP + HEIGHT + 48.0;
    write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"title summary\">\n\
         <title id=\"title\">Answers in time as the load grows</title>\n<desc id=\"summary\">At twice the load:"
    )?;
    let twice = LOADS.iter().position(|load| *load == 2.0).unwrap_or_default();
    for Curve { name, points, .. } in panels.iter().flat_map(|(_, curves)| curves) {
        write!(svg, " {name} {:.0} %.", 100.0 * points[twice])?;
    }
    writeln!(svg, "</desc>\n<style>{STYLE}</style>")?;
    for (i, (title, curves)) in panels.iter().enumerate() {
        panel(&mut svg, 60.0 + i as f64 * (PANEL + 70.0), title, curves)?;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn panel(svg: &mut String, left: f64, title: &str, curves: &[Curve]) -> fmt::Result {
    let x = |load: f64| left + load / 4.0 * PANEL;
    let y = |part: f64| TOP + (1.0 - part) * HEIGHT;
    writeln!(svg, "<text x=\"{left}\" y=\"24\" class=\"name\">{title}</text>")?;
    for percent in [0, 50, 100] {
        let height = y(f64::from(percent) / 100.0);
        writeln!(
            svg,
            "<path class=\"grid\" d=\"M{left} {height}h{PANEL}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{percent} %</text>",
            left - 8.0,
            height + 4.0
        )?;
    }
    let below = TOP + HEIGHT + 18.0;
    for load in 0..=4 {
        writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{below}\" class=\"mid\">{load}</text>",
            x(load.into())
        )?;
    }
    let (middle, lowest) = (left + PANEL / 2.0, below + 20.0);
    writeln!(
        svg,
        "<text x=\"{middle}\" y=\"{lowest}\" class=\"mid\">load, in times what the server can do</text>"
    )?;
    for (i, Curve { name, colour, points }) in curves.iter().enumerate() {
        let mut way = String::new();
        for (load, part) in LOADS.iter().zip(points) {
            let letter = if way.is_empty() { 'M' } else { 'L' };
            write!(way, "{letter}{:.1} {:.1}", x(*load), y(*part))?;
        }
        let (right, line) = (left + PANEL, TOP + 16.0 + 18.0 * i as f64);
        writeln!(
            svg,
            "<path d=\"{way}\" style=\"stroke:{colour}\"/>\
             <text x=\"{right}\" y=\"{line}\" class=\"end\" style=\"fill:{colour}\">{name}</text>"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_of_overload_is_what_the_code_draws() {
        let drawn = draw().unwrap();
        let picture = fs::read_to_string(PICTURE).unwrap();
        assert!(picture == drawn, "run `cargo run --example overload`");
    }
}
