//! Charts of tables, as SVG that is readable on light and on dark backgrounds.

use std::error::Error;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::cell::Cell;
use super::table::{Matrix, Table, is_ours};

/// A chart that a page asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Wish {
    style: Style,
    name: String,
    pub(super) title: String,
    /// Only the cases that contain this text.
    part: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Style {
    /// A line for each contender, over cases that are populations.
    Lines,
    /// A bar for each contender, in the first case.
    Bars,
}

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

const WIDTH: u32 = 900;
/// Where what is below the title begins.
const TOP: u32 = 36;
const BAR: u32 = 26;

/// Visible on white and on black, like all hues below.
const GREY: RGBColor = RGBColor(122, 127, 135);
const OURS: [RGBColor; 3] =
    [RGBColor(59, 130, 246), RGBColor(34, 166, 201), RGBColor(124, 108, 240)];
const RIVALS: [RGBColor; 8] = [
    RGBColor(229, 83, 75),
    RGBColor(217, 130, 43),
    RGBColor(63, 166, 90),
    RGBColor(192, 97, 192),
    RGBColor(168, 134, 44),
    RGBColor(209, 101, 143),
    RGBColor(107, 142, 35),
    RGBColor(176, 116, 90),
];

/// If the largest figure is more than this many times the smallest, the axis of bars is logarithmic, unless the figures
/// are percent.
const FAR: f64 = 30.0;

/// A chart over time averages more points than this in groups.
const POINTS: usize = 400;

impl Wish {
    pub(super) fn read(style: &str, name: &str, rest: &str) -> Result<Self, String> {
        let style = if style == "lines" { Style::Lines } else { Style::Bars };
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.starts_with("bench-") || !name.chars().all(is_plain) {
            return Err(format!("a chart is named like `bench-table`, not `{name}`"));
        }
        let (title, part) = rest.split_once('|').unwrap_or((rest, ""));
        let [title, part] = [title, part].map(|text| text.trim().to_owned());
        Ok(Self { style, name: name.to_owned(), title, part })
    }

    pub(super) fn path(&self) -> String {
        format!("docs/{}.svg", self.name)
    }

    /// The Markdown that shows the picture on a page. `way` is the path from the page to the root.
    pub(super) fn link(&self, way: &str) -> String {
        format!("![{}]({way}{})\n", self.heading().replace(['[', ']'], ""), self.path())
    }

    pub(super) fn draw(&self, table: &Table) -> Result<String, String> {
        let series = series(&table.matrix(), &self.part);
        let drawn = match self.style {
            Style::Lines => lines(&self.heading(), &series),
            Style::Bars => bars(&self.heading(), &series),
        };
        drawn.map_err(|problem| format!("the chart {} cannot be drawn: {problem}", self.name))
    }

    fn heading(&self) -> String {
        let part = if self.part.is_empty() { "" } else { ": " };
        format!("{}{part}{}", self.title, self.part).replace('`', "")
    }
}

/// A contender and its figures, in the order of the cases.
#[derive(Debug)]
struct Series {
    name: String,
    colour: RGBColor,
    figures: Vec<(String, Cell)>,
}

/// The figures of each contender in the cases that contain `part`. Ratios are not contenders.
fn series(matrix: &Matrix<'_>, part: &str) -> Vec<Series> {
    const BASELINES: [&str; 7] =
        ["floor", "nothing", "axum,", "actix-web,", "a function", "a layer", "a queue"];
    let (mut ours, mut rivals) = (OURS.iter().cycle(), RIVALS.iter().cycle());
    let of = |(name, cells): (&&str, &Vec<(&str, Option<Cell>)>)| {
        let colour = match name {
            name if is_ours(name) => ours.next(),
            name if BASELINES.iter().any(|baseline| name.starts_with(baseline)) => None,
            _ => rivals.next(),
        };
        let cases = matrix.cases.iter().zip(cells).filter(|(case, _)| case.contains(part));
        let figures: Vec<_> =
            cases.filter_map(|(case, (_, cell))| Some((plain(case), (*cell)?))).collect();
        let is_contender = !name.contains('÷') && !figures.is_empty();
        let colour = colour.copied().unwrap_or(GREY);
        is_contender.then(|| Series { name: plain(name), colour, figures })
    };
    matrix.contenders.iter().zip(&matrix.cells).filter_map(of).collect()
}

/// A bar for each contender.
fn bars(title: &str, series: &[Series]) -> Result<String, String> {
    let bars: Vec<_> =
        series.iter().filter_map(|one| Some((one, one.figures.first()?.1))).collect();
    if bars.is_empty() {
        return Err("no contender has a figure".to_owned());
    }
    let ends = bars.iter().flat_map(|(_, cell)| {
        let (low, high) = cell.spread.unwrap_or((cell.median, cell.median));
        [cell.median, low, high]
    });
    let (low, high) = range(ends.filter(|end| *end > 0.0));
    let summary = bars.iter().map(|(one, cell)| format!("{}: {}.", one.name, short(cell.median)));
    let summary = Vec::from_iter(summary).join(" ");
    let height = 72 + BAR * bars.len() as u32;
    picture(title, &summary, height, |canvas| {
        if high > low * FAR && !title.contains('%') {
            // The smallest figure has a visible bar too.
            let axis = (low / 2.0..high * 1.6).log_scale();
            return bars_along(canvas, &bars, axis, low / 2.0, "The axis is logarithmic.");
        }
        let least = bars.iter().fold(0.0_f64, |least, (_, cell)| least.min(cell.median));
        bars_along(canvas, &bars, least * 1.15..high * 1.15, 0.0, "")
    })
}

fn bars_along<X>(
    canvas: &Canvas<'_>,
    bars: &[(&Series, Cell)],
    axis: X,
    base: f64,
    note: &str,
) -> Drawn
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(canvas);
    chart.set_label_area_size(LabelAreaPosition::Left, 330);
    chart.set_label_area_size(LabelAreaPosition::Bottom, 40).margin_right(30);
    let mut chart = chart.build_cartesian_2d(axis, bars.len() as f64..0.0)?;
    let mut mesh = chart.configure_mesh();
    mesh.disable_y_mesh().y_labels(0).axis_style(TRANSPARENT).x_desc(note);
    mesh.light_line_style(TRANSPARENT).bold_line_style(GREY.mix(0.35));
    mesh.label_style(text()).x_label_formatter(&|figure| short(*figure)).draw()?;
    for (nth, (one, cell)) in bars.iter().enumerate() {
        let middle = nth as f64 + 0.5;
        let bar = [(base, middle - 0.25), (cell.median, middle + 0.25)];
        chart.draw_series([Rectangle::new(bar, one.colour.mix(0.85).filled())])?;
        let (low, high) = cell.spread.unwrap_or((cell.median, cell.median));
        let spread = vec![(low, middle), (high, middle)];
        chart.draw_series([PathElement::new(spread, GREY.stroke_width(2))])?;
        let (x, y) = chart.backend_coord(&(cell.median.max(high), middle));
        let y = y - TOP as i32 - 7;
        canvas.draw_text(&short(cell.median), &text(), (x + 8, y))?;
        canvas.draw_text(&one.name, &text(), (24, y))?;
    }
    Ok(())
}

/// A line for each contender, over the population; both axes are logarithmic.
fn lines(title: &str, series: &[Series]) -> Result<String, String> {
    let points = |one: &Series| -> Vec<(f64, Cell)> {
        let point = |(case, cell): &(String, Cell)| Some((population(case)?, *cell));
        one.figures.iter().filter_map(point).filter(|(_, cell)| cell.median > 0.0).collect()
    };
    let lines: Vec<_> = series.iter().map(|one| (one, points(one))).collect();
    let lines: Vec<_> = lines.into_iter().filter(|(_, points)| points.len() > 1).collect();
    if lines.is_empty() {
        return Err("no contender has figures for two populations".to_owned());
    }
    let all = || lines.iter().flat_map(|(_, points)| points);
    let across = range(all().map(|(population, _)| *population));
    let up = range(all().map(|(_, cell)| cell.median));
    let summary = lines.iter().map(|(one, points)| {
        let point = |(population, cell): &(f64, Cell)| {
            format!("{} at {}", short(cell.median), short(*population))
        };
        format!("{}: {}.", one.name, Vec::from_iter(points.iter().map(point)).join(", "))
    });
    let summary = Vec::from_iter(summary).join(" ");
    picture(title, &summary, 460, |canvas| {
        let mut chart = ChartBuilder::on(canvas);
        chart.set_label_area_size(LabelAreaPosition::Left, 56);
        chart.set_label_area_size(LabelAreaPosition::Bottom, 40).margin_right(250);
        let mut chart = chart.build_cartesian_2d(
            (across.0..across.1).log_scale(),
            (up.0 / 1.3..up.1 * 1.3).log_scale(),
        )?;
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT).bold_line_style(GREY.mix(0.35));
        mesh.axis_style(TRANSPARENT).label_style(text());
        mesh.x_desc("keys; both axes are logarithmic");
        mesh.x_label_formatter(&|figure| short(*figure));
        mesh.y_label_formatter(&|figure| short(*figure)).draw()?;
        // The names stand in the order in which the lines end.
        let mut order: Vec<_> = lines.iter().collect();
        order.sort_by(|(_, a), (_, b)| last(b).total_cmp(&last(a)));
        for (nth, (one, points)) in order.into_iter().enumerate() {
            let style = one.colour.stroke_width(2);
            let line = points.iter().map(|(population, cell)| (*population, cell.median));
            chart.draw_series(LineSeries::new(line, style).point_size(3))?;
            let name = format!("{}, {}", one.name, short(last(points)));
            let at = (WIDTH as i32 - 236, 52 + 19 * nth as i32);
            canvas.draw_text(&name, &text().color(&one.colour), at)?;
        }
        Ok(())
    })
}

fn last(points: &[(f64, Cell)]) -> f64 {
    points.last().map_or(0.0, |(_, cell)| cell.median)
}

/// Draws the named columns of a CSV file whose first column is seconds.
pub(crate) fn draw_over_time(title: &str, csv: &str, columns: &[&str]) -> Result<String, String> {
    const COLOURS: [RGBColor; 4] = [GREY, RIVALS[1], OURS[0], RIVALS[0]];
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let numbers = |line: &str| line.split(',').map(str::parse).collect::<Result<Vec<f64>, _>>();
    let rows: Vec<Vec<f64>> =
        lines.map(numbers).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    if rows.is_empty() || rows.iter().any(|row| row.len() != header.len()) {
        return Err("it has no rows, or rows of different lengths".to_owned());
    }
    let column = |name: &&str| {
        let at = header.iter().position(|column| column == name);
        at.ok_or_else(|| format!("it has no column `{name}`"))
    };
    let columns: Vec<usize> = columns.iter().map(column).collect::<Result<_, _>>()?;
    let of = |at: usize| range(rows.iter().map(|row| row[at]));
    let summary = columns.iter().map(|at| {
        let (least, most) = of(*at);
        format!("{}: {} to {}.", header[*at], short(least), short(most))
    });
    let summary = Vec::from_iter(summary).join(" ");
    let most = columns.iter().fold(f64::MIN_POSITIVE, |most, at| most.max(of(*at).1));
    let group = rows.len().div_ceil(POINTS);
    let mean = |rows: &[Vec<f64>], at: usize| {
        rows.iter().map(|row| row[at]).sum::<f64>() / rows.len() as f64
    };
    picture(title, &summary, 364, |canvas| {
        let mut chart = ChartBuilder::on(canvas);
        chart.set_label_area_size(LabelAreaPosition::Left, 56);
        chart.set_label_area_size(LabelAreaPosition::Bottom, 40).margin_top(28).margin_right(24);
        let mut chart = chart.build_cartesian_2d(0.0..of(0).1.max(1.0), 0.0..most)?;
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT).bold_line_style(GREY.mix(0.35));
        mesh.axis_style(TRANSPARENT).label_style(text());
        mesh.x_label_formatter(&|second| format!("{} s", short(*second)));
        mesh.y_label_formatter(&|figure| short(*figure)).draw()?;
        for (nth, (&at, colour)) in columns.iter().zip(COLOURS).enumerate() {
            let points = rows.chunks(group).map(|rows| (mean(rows, 0), mean(rows, at)));
            chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
            let place = (56 + 180 * nth as i32, 40);
            canvas.draw_text(header[at], &text().color(&colour), place)?;
        }
        Ok(())
    })
}

/// The picture that `draw` makes below the title, with a description of what it shows.
fn picture(
    title: &str,
    summary: &str,
    height: u32,
    draw: impl FnOnce(&Canvas<'_>) -> Drawn,
) -> Result<String, String> {
    let mut svg = String::new();
    let drawn = || -> Drawn {
        let canvas = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        canvas.draw_text(title, &("sans-serif", 15).into_font().color(&GREY), (24, 14))?;
        draw(&canvas.margin(TOP, 0, 0, 0))?;
        canvas.present()?;
        Ok(())
    };
    drawn().map_err(|error| error.to_string())?;
    let [title, summary] = [title, summary]
        .map(|text| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"));
    let described = format!("role=\"img\">\n<title>{title}</title>\n<desc>{summary}</desc>\n");
    Ok(svg.replacen(">\n", &format!(" {described}"), 1))
}

fn text() -> TextStyle<'static> {
    ("sans-serif", 13).into_font().color(&GREY)
}

fn range(figures: impl Iterator<Item = f64>) -> (f64, f64) {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    figures.fold(ends, |(low, high), figure| (figure.min(low), figure.max(high)))
}

/// `1000` of `1000 × u64`.
fn population(case: &str) -> Option<f64> {
    let is_digit = |c: &char| c.is_ascii_digit() || *c == ',';
    let digits: String = case.chars().take_while(is_digit).filter(|c| *c != ',').collect();
    digits.parse().ok().filter(|population| *population > 0.0)
}

/// Without Markdown syntax.
fn plain(text: &str) -> String {
    text.replace(['`', '*'], "")
}

/// A figure in its shortest readable form.
fn short(number: f64) -> String {
    // With at most one decimal place.
    let trimmed = |number: f64| {
        let text = format!("{number:.1}");
        text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
    };
    match number.abs() {
        n if n >= 1e6 => format!("{} M", trimmed(number / 1e6)),
        n if n >= 1e4 || n >= 1e3 && n % 1e3 == 0.0 => format!("{} k", trimmed(number / 1e3)),
        n if n >= 100.0 => format!("{number:.0}"),
        _ => trimmed(number),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::printed_in;
    use super::*;

    const PRINTED: &str = "
### The table, ns

| keys | floor | sluicegate `Limiter` | governor | governor ÷ sluicegate |
| --- | ---: | ---: | ---: | ---: |
| 1 × `u64` | 5 | 12.0 (11–13) | 9.0 (8–9.5) | 0.75 |
| 1 × text | 7 | 14.0 (13–15) | 12 (11–13) | 0.86 |
| 1,000,000 × `u64` | 100 | 130 (120–140) | 430 (400–450) | 3.3 |

### The layer, ns

| service | request | beyond |
| --- | ---: | ---: |
| axum, no layer | 380 (370–390) | -75 |
| sluicegate & more | 800 (790–820) | +300 |
| tower_governor | 16215 (16079–16551) | – |
";

    fn drawn(style: &str, rest: &str) -> Result<String, String> {
        let wish = Wish::read(style, "bench-it", rest)?;
        let table = printed_in(PRINTED).into_iter().find(|table| table.title == wish.title);
        wish.draw(&table.expect("a table of this title"))
    }

    #[test]
    fn a_line_is_drawn_for_each_contender_over_the_population() {
        let svg = drawn("lines", "The table, ns | `u64`").unwrap();
        assert!(svg.contains("<title>The table, ns: u64</title>"), "{svg}");
        assert!(
            svg.contains("floor: 5 at 1, 100 at 1 M. sluicegate Limiter: 12 at 1, 130 at 1 M."),
            "{svg}"
        );
        assert!(svg.contains("governor, 430\n"), "{svg}");
        assert!(!svg.contains('÷') && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(svg.matches("<polyline").count(), 3, "{svg}");
    }

    #[test]
    fn a_bar_is_drawn_for_each_contender() {
        let svg = drawn("bars", "The layer, ns").unwrap();
        let summary = "axum, no layer: 380. sluicegate &amp; more: 800. tower_governor: 16.2 k.";
        assert!(svg.contains(summary), "{svg}");
        assert!(svg.contains("The axis is logarithmic."), "{svg}");
        let svg = drawn("bars", "The layer, ns | beyond").unwrap();
        assert!(svg.contains("axum, no layer: -75. sluicegate &amp; more: 300.</desc>"), "{svg}");
        assert!(!svg.contains("logarithmic"), "{svg}");
    }

    #[test]
    fn what_cannot_be_drawn_is_named() {
        assert_eq!(
            drawn("lines", "The layer, ns").unwrap_err(),
            "the chart bench-it cannot be drawn: no contender has figures for two populations"
        );
        assert_eq!(
            drawn("bars", "The table, ns | 7 × `u64`").unwrap_err(),
            "the chart bench-it cannot be drawn: no contender has a figure"
        );
        assert_eq!(
            Wish::read("bars", "../up", "The table").unwrap_err(),
            "a chart is named like `bench-table`, not `../up`"
        );
    }

    #[test]
    fn the_page_shows_the_picture() {
        let wish = Wish::read("lines", "bench-table-u64", "The table, ns | `u64`").unwrap();
        assert_eq!(wish.link("../"), "![The table, ns: u64](../docs/bench-table-u64.svg)\n");
    }

    #[test]
    fn a_line_is_drawn_for_each_column_that_is_named() {
        let csv = "second,wanted,used,ignored\n1,10,5,99\n2,20,10,99\n3,20,20,99\n";
        let svg = draw_over_time("Use & more", csv, &["wanted", "used"]).unwrap();
        assert!(svg.contains("Use &amp; more") && svg.contains("\nwanted\n"), "{svg}");
        assert!(!svg.contains("ignored"));
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("wanted: 10 to 20."));
    }

    #[test]
    fn a_file_that_cannot_be_drawn_is_an_error() {
        for (csv, column) in [
            ("second,used\n", "used"),
            ("second,used\n1,2\n", "leased"),
            ("second,used\n1,many\n", "used"),
            ("second,used\n1\n", "used"),
        ] {
            assert!(draw_over_time("", csv, &[column]).is_err(), "{csv}");
        }
    }
}
