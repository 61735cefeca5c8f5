//! A bar for each contender.

use super::scale::Scale;
use super::{Series, escaped, picture, short};

const LEFT: f64 = 340.0;
const RIGHT: f64 = 810.0;
const TOP: f64 = 52.0;
const BAR: f64 = 26.0;

/// If the largest figure is more than this many times the smallest, the axis is logarithmic, unless the figures are percent.
const FAR: f64 = 30.0;

pub(super) fn draw(title: &str, series: &[Series]) -> Result<String, String> {
    let bars: Vec<_> =
        series.iter().filter_map(|one| Some((one, one.figures.first()?.1))).collect();
    if bars.is_empty() {
        return Err("no contender has a figure".to_owned());
    }
    let highest = || {
        let ends = bars
            .iter()
            .flat_map(|(_, cell)| [cell.median, cell.spread.map_or(0.0, |(_, high)| high)]);
        ends.filter(|figure| *figure > 0.0)
    };
    let (low, high) = highest()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), figure| (figure.min(low), figure.max(high)));
    let scale = if high > low * FAR && !title.contains('%') {
        // The smallest figure has a visible bar too.
        Scale::logarithmic(highest().chain([low / 2.0]), LEFT, RIGHT)
    } else {
        Scale::linear(highest(), LEFT, RIGHT)
    };
    let bottom = TOP + BAR * bars.len() as f64;
    let mut content = axis(scale, bottom);
    for (i, (one, cell)) in bars.iter().enumerate() {
        let y = TOP + BAR * (i as f64 + 0.5);
        let (x, middle) = (LEFT - 12.0, y + 4.5);
        let (name, colour) = (escaped(&one.name), one.side.colour(0));
        let (start, end) = (scale.place(0.0), scale.place(cell.median));
        content += &format!("<text x=\"{x}\" y=\"{middle}\" class=\"end\">{name}</text>");
        content += &format!(
            "<path d=\"M{start} {y}H{end:.1}\" \
             style=\"stroke:{colour};stroke-width:12;stroke-linecap:butt;stroke-opacity:.85\"/>"
        );
        let mut right = end;
        if let Some((low, high)) = cell.spread {
            let (low, high) = (scale.place(low), scale.place(high));
            content += &format!("<path class=\"spread\" d=\"M{low:.1} {y}H{high:.1}\"/>");
            right = right.max(high);
        }
        let (x, text) = (right + 8.0, short(cell.median));
        content += &format!("<text x=\"{x:.1}\" y=\"{middle}\">{text}</text>\n");
    }
    let of =
        |(one, cell): &(&Series, super::Cell)| format!("{}: {}.", one.name, short(cell.median));
    let summary: Vec<_> = bars.iter().map(of).collect();
    Ok(picture(title, &summary.join(" "), bottom + 36.0, &content))
}

fn axis(scale: Scale, bottom: f64) -> String {
    let [mut grid, mut texts] = <[String; 2]>::default();
    for tick in scale.ticks() {
        let (x, y, text) = (scale.place(tick), bottom + 20.0, short(tick));
        grid += &format!("M{x:.1} {TOP}V{bottom}");
        texts += &format!("<text x=\"{x:.1}\" y=\"{y}\" class=\"mid\">{text}</text>");
    }
    if scale.is_logarithmic() {
        let y = bottom + 20.0;
        texts += &format!("<text x=\"24\" y=\"{y}\">The axis is logarithmic.</text>");
    }
    format!("<path class=\"grid\" d=\"{grid}\"/>{texts}\n")
}
