//! A line for each contender, over the population; both axes are logarithmic.

use super::scale::Scale;
use super::{Series, Side, escaped, picture, short};

const LEFT: f64 = 72.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 420.0;

/// The distance between the names of two lines that end at the same height.
const LINE: f64 = 17.0;

pub(super) fn draw(title: &str, series: &[Series]) -> Result<String, String> {
    let lines: Vec<_> = (0..series.len()).map(|i| Line::of(series, i)).collect();
    let lines: Vec<_> = lines.into_iter().filter(|line| line.points.len() > 1).collect();
    if lines.is_empty() {
        return Err("no contender has figures for two populations".to_owned());
    }
    let points = || lines.iter().flat_map(|line| &line.points);
    let across = Scale::logarithmic(points().map(|point| point.population), LEFT, RIGHT);
    let spreads = points().flat_map(|point| [point.median, point.low, point.high]);
    let up = Scale::logarithmic(spreads, BOTTOM, TOP);

    let mut content = axes(across, up, points().map(|point| point.population));
    for line in &lines {
        content += &line.drawn(across, up);
    }
    content += &names(&lines, up);
    Ok(picture(title, &summary(&lines), BOTTOM + 44.0, &content))
}

struct Line<'a> {
    series: &'a Series,
    colour: &'static str,
    points: Vec<Point>,
}

struct Point {
    population: f64,
    median: f64,
    low: f64,
    high: f64,
}

impl<'a> Line<'a> {
    fn of(all: &'a [Series], at: usize) -> Self {
        let series = &all[at];
        let before = all[..at].iter().filter(|other| other.side == series.side).count();
        let point = |(case, cell): &(String, super::Cell)| {
            let (low, high) = cell.spread.unwrap_or((cell.median, cell.median));
            let point = Point { population: population(case)?, median: cell.median, low, high };
            (point.low > 0.0).then_some(point)
        };
        let points = series.figures.iter().filter_map(point).collect();
        Self { series, colour: series.side.colour(before), points }
    }

    fn drawn(&self, across: Scale, up: Scale) -> String {
        let [mut way, mut spreads, mut dots] = <[String; 3]>::default();
        for (i, point) in self.points.iter().enumerate() {
            let (x, y) = (across.place(point.population), up.place(point.median));
            way += &format!("{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
            spreads += &format!("M{x:.1} {:.1}V{:.1}", up.place(point.low), up.place(point.high));
            dots += &format!("M{x:.1} {y:.1}h.01");
        }
        let width = if self.series.side == Side::Ours { 2.6 } else { 1.7 };
        let colour = self.colour;
        format!(
            "<path d=\"{spreads}\" class=\"spread\" style=\"stroke:{colour}\"/>\
             <path d=\"{way}\" style=\"stroke:{colour};stroke-width:{width}\"/>\
             <path d=\"{dots}\" style=\"stroke:{colour};stroke-width:{}\"/>\n",
            width * 2.6,
        )
    }

    fn last(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.median)
    }
}

fn axes(across: Scale, up: Scale, populations: impl Iterator<Item = f64>) -> String {
    let mut populations: Vec<_> = populations.collect();
    populations.sort_by(f64::total_cmp);
    populations.dedup();
    let [mut grid, mut texts] = <[String; 2]>::default();
    for population in populations {
        let x = across.place(population);
        grid += &format!("M{x:.1} {TOP}V{BOTTOM}");
        let (y, text) = (BOTTOM + 20.0, short(population));
        texts += &format!("<text x=\"{x:.1}\" y=\"{y}\" class=\"mid\">{text}</text>");
    }
    for tick in up.ticks() {
        let y = up.place(tick);
        grid += &format!("M{LEFT} {y:.1}H{RIGHT}");
        let (x, y, text) = (LEFT - 8.0, y + 4.5, short(tick));
        texts += &format!("<text x=\"{x}\" y=\"{y:.1}\" class=\"end\">{text}</text>");
    }
    let (x, y) = (RIGHT + 44.0, BOTTOM + 20.0);
    texts += &format!("<text x=\"{x}\" y=\"{y}\">keys; both axes are logarithmic</text>");
    format!("<path class=\"grid\" d=\"{grid}\"/>{texts}\n")
}

/// To the right of each line its name and last figure, moved apart where lines end close together.
fn names(lines: &[Line<'_>], up: Scale) -> String {
    let mut order: Vec<_> = lines.iter().collect();
    order.sort_by(|a, b| b.last().total_cmp(&a.last()));
    let mut heights: Vec<_> = order.iter().map(|line| up.place(line.last())).collect();
    for i in 1..heights.len() {
        heights[i] = heights[i].max(heights[i - 1] + LINE);
    }
    let mut lowest = BOTTOM;
    for height in heights.iter_mut().rev() {
        *height = height.min(lowest);
        lowest = *height - LINE;
    }
    let name = |(line, height): (&&Line<'_>, f64)| {
        let (x, y, colour) = (RIGHT + 16.0, height + 4.5, line.colour);
        let (name, last) = (escaped(&line.series.name), short(line.last()));
        format!("<text x=\"{x}\" y=\"{y:.1}\" style=\"fill:{colour}\">{name}, {last}</text>\n")
    };
    order.iter().zip(heights).map(name).collect()
}

fn summary(lines: &[Line<'_>]) -> String {
    let of = |line: &Line<'_>| {
        let point =
            |point: &Point| format!("{} at {}", short(point.median), short(point.population));
        let points: Vec<_> = line.points.iter().map(point).collect();
        format!("{}: {}.", line.series.name, points.join(", "))
    };
    lines.iter().map(of).collect::<Vec<_>>().join(" ")
}

/// `1000` of `1000 × u64`.
fn population(case: &str) -> Option<f64> {
    let digits: String = case
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().ok().filter(|population| *population > 0.0)
}
