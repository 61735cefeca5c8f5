//! Charts of tables: plain SVG that is readable on light and on dark backgrounds.

mod bars;
mod lines;
mod scale;
mod time;

pub(crate) use self::time::draw as draw_over_time;

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

const WIDTH: f64 = 900.0;

/// Hues and greys of middle lightness, visible on white and on black.
const STYLE: &str = "\
text{font:13px -apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#7a7f87}\
.name{font-size:15px;font-weight:600}\
.end{text-anchor:end}.mid{text-anchor:middle}\
path{fill:none;stroke:#7a7f87;stroke-linejoin:round;stroke-linecap:round}\
.grid{stroke-opacity:.35;stroke-dasharray:2 3}\
.spread{stroke-opacity:.6}";

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
            Style::Lines => lines::draw(&self.heading(), &series),
            Style::Bars => bars::draw(&self.heading(), &series),
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
    side: Side,
    figures: Vec<(String, Cell)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Rival,
    /// The baseline.
    Yardstick,
}

impl Side {
    fn of(name: &str) -> Self {
        const YARDSTICKS: [&str; 7] =
            ["floor", "nothing", "axum,", "actix-web,", "a function", "a layer", "a queue"];
        if is_ours(name) {
            Self::Ours
        } else if YARDSTICKS.iter().any(|yardstick| name.starts_with(yardstick)) {
            Self::Yardstick
        } else {
            Self::Rival
        }
    }

    /// The colour for a contender with this many of its side before it.
    fn colour(self, nth: usize) -> &'static str {
        const OURS: [&str; 3] = ["#3b82f6", "#22a6c9", "#7c6cf0"];
        const RIVALS: [&str; 8] = [
            "#e5534b", "#d9822b", "#3fa65a", "#c061c0", "#a8862c", "#d1658f", "#6b8e23", "#b0745a",
        ];
        match self {
            Self::Ours => OURS[nth % OURS.len()],
            Self::Rival => RIVALS[nth % RIVALS.len()],
            Self::Yardstick => "#7a7f87",
        }
    }
}

/// The figures of each contender in the cases that contain `part`. Ratios are not contenders.
fn series(matrix: &Matrix<'_>, part: &str) -> Vec<Series> {
    let of = |(name, cells): (&&str, &Vec<(&str, Option<Cell>)>)| {
        let cases = matrix.cases.iter().zip(cells).filter(|(case, _)| case.contains(part));
        let figures: Vec<_> =
            cases.filter_map(|(case, (_, cell))| Some((plain(case), (*cell)?))).collect();
        let is_one = !name.contains('÷') && !figures.is_empty();
        is_one.then(|| Series { name: plain(name), side: Side::of(name), figures })
    };
    matrix.contenders.iter().zip(&matrix.cells).filter_map(of).collect()
}

/// Without Markdown syntax.
fn plain(text: &str) -> String {
    text.replace(['`', '*'], "")
}

/// The picture around `content`, with the title on top and a description of what it shows.
fn picture(title: &str, summary: &str, height: f64, content: &str) -> String {
    let [title, summary] = [title, summary].map(escaped);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-labelledby=\"title summary\">\n\
         <title id=\"title\">{title}</title>\n\
         <desc id=\"summary\">{summary}</desc>\n\
         <style>{STYLE}</style>\n\
         <text x=\"24\" y=\"28\" class=\"name\">{title}</text>\n\
         {content}</svg>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A figure in its shortest readable form.
fn short(number: f64) -> String {
    match number.abs() {
        n if n >= 1e6 => format!("{} M", trimmed(number / 1e6)),
        n if n >= 1e4 || n >= 1e3 && n % 1e3 == 0.0 => format!("{} k", trimmed(number / 1e3)),
        n if n >= 100.0 => format!("{number:.0}"),
        _ => trimmed(number),
    }
}

/// With at most one decimal place.
fn trimmed(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests;
