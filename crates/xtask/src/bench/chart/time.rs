//! Lines over time, from a CSV file whose first column is seconds.

use super::scale::Scale;
use super::{escaped, picture, short};

const LEFT: f64 = 72.0;
const RIGHT: f64 = 876.0;
const TOP: f64 = 76.0;
const BOTTOM: f64 = 320.0;
const COLOURS: [&str; 4] = ["#7a7f87", "#d9822b", "#3b82f6", "#e5534b"];
/// More points than this are averaged in groups.
const POINTS: usize = 400;

/// Draws the named columns.
pub(crate) fn draw(title: &str, csv: &str, columns: &[&str]) -> Result<String, String> {
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
    let group = rows.len().div_ceil(POINTS);
    let points: Vec<Vec<f64>> = rows.chunks(group).map(|rows| mean(rows, header.len())).collect();

    let times = || rows.iter().map(|row| row[0]);
    let values = rows.iter().flat_map(|row| columns.iter().map(|at| row[*at]));
    let (across, up) = (Scale::linear(times(), LEFT, RIGHT), Scale::linear(values, BOTTOM, TOP));
    let mut content = axes(across, up);
    for (nth, (&at, colour)) in columns.iter().zip(COLOURS).enumerate() {
        let mut way = String::new();
        for point in &points {
            let (x, y) = (across.place(point[0]), up.place(point[at]));
            way += &format!("{}{x:.1} {y:.1}", if way.is_empty() { 'M' } else { 'L' });
        }
        let (x, y, name) = (LEFT + 180.0 * nth as f64, TOP - 22.0, escaped(header[at]));
        content += &format!(
            "<path d=\"{way}\" style=\"stroke:{colour};stroke-width:1.7\"/>\
             <text x=\"{x}\" y=\"{y}\" style=\"fill:{colour}\">{name}</text>\n"
        );
    }
    let summary = |at: &usize| {
        let (least, most) = rows.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), row| {
            (least.min(row[*at]), most.max(row[*at]))
        });
        format!("{}: {} to {}.", header[*at], short(least), short(most))
    };
    let summary: Vec<String> = columns.iter().map(summary).collect();
    Ok(picture(title, &summary.join(" "), BOTTOM + 44.0, &content))
}

fn mean(rows: &[Vec<f64>], columns: usize) -> Vec<f64> {
    let of = |at: usize| rows.iter().map(|row| row[at]).sum::<f64>() / rows.len() as f64;
    (0..columns).map(of).collect()
}

fn axes(across: Scale, up: Scale) -> String {
    let [mut grid, mut texts] = <[String; 2]>::default();
    for tick in up.ticks() {
        let y = up.place(tick);
        grid += &format!("M{LEFT} {y:.1}H{RIGHT}");
        let (x, y, text) = (LEFT - 8.0, y + 4.5, short(tick));
        texts += &format!("<text x=\"{x}\" y=\"{y:.1}\" class=\"end\">{text}</text>");
    }
    for tick in across.ticks() {
        let (x, y, text) = (across.place(tick), BOTTOM + 20.0, short(tick));
        texts += &format!("<text x=\"{x:.1}\" y=\"{y}\" class=\"mid\">{text} s</text>");
    }
    format!("<path class=\"grid\" d=\"{grid}\"/>{texts}\n")
}

#[cfg(test)]
mod tests {
    use super::draw;

    #[test]
    fn a_line_is_drawn_for_each_column_that_is_named() {
        let csv = "second,wanted,used,ignored\n1,10,5,99\n2,20,10,99\n3,20,20,99\n";
        let svg = draw("Use & more", csv, &["wanted", "used"]).unwrap();
        assert!(
            svg.contains("Use &amp; more") && svg.contains(">wanted<") && svg.contains(">used<")
        );
        assert!(!svg.contains("ignored"));
        assert_eq!(svg.matches("stroke-width:1.7").count(), 2);
        assert!(svg.contains("wanted: 10 to 20."));
    }

    #[test]
    fn a_file_that_cannot_be_drawn_is_an_error() {
        assert!(draw("", "second,used\n", &["used"]).is_err());
        assert!(draw("", "second,used\n1,2\n", &["leased"]).is_err());
        assert!(draw("", "second,used\n1,many\n", &["used"]).is_err());
        assert!(draw("", "second,used\n1\n", &["used"]).is_err());
    }
}
