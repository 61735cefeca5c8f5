//! A cell of a printed table: `52.1 (51.8–53.0)`.

/// A figure, and the spread of its runs, if it is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cell {
    pub(super) median: f64,
    /// The tenth and the ninetieth percentile.
    pub(super) spread: Option<(f64, f64)>,
}

impl Cell {
    /// `None` if the text is not a figure: a name, or a dash for a missing figure.
    pub(super) fn read(text: &str) -> Option<Self> {
        let Some((median, rest)) = text.split_once('(') else {
            return Some(Self { median: number(text)?, spread: None });
        };
        let (low, high) = rest.trim_end().strip_suffix(')')?.split_once('–')?;
        Some(Self { median: number(median)?, spread: Some((number(low)?, number(high)?)) })
    }

    /// Whether the two spreads overlap.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        match (self.spread, other.spread) {
            (Some((low, high)), Some((other_low, other_high))) => {
                low <= other_high && other_low <= high
            }
            _ => false,
        }
    }
}

/// With or without a sign, and with or without groups of three digits.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.strip_prefix('+').unwrap_or(text).replace(',', "");
    digits.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_spread(median: f64, low: f64, high: f64) -> Option<Cell> {
        Some(Cell { median, spread: Some((low, high)) })
    }

    fn alone(median: f64) -> Option<Cell> {
        Some(Cell { median, spread: None })
    }

    #[test]
    fn a_median_comes_with_its_percentiles() {
        assert_eq!(Cell::read("52.1 (51.8–53.0)"), with_spread(52.1, 51.8, 53.0));
        assert_eq!(Cell::read(" 16215 (16079–16551) "), with_spread(16215.0, 16079.0, 16551.0));
        assert_eq!(Cell::read("+71 (-3–+102)"), with_spread(71.0, -3.0, 102.0));
        assert_eq!(Cell::read("-75 (-80–-70)"), with_spread(-75.0, -80.0, -70.0));
    }

    #[test]
    fn a_count_comes_alone() {
        assert_eq!(Cell::read("0"), alone(0.0));
        assert_eq!(Cell::read("+403"), alone(403.0));
        assert_eq!(Cell::read("-75"), alone(-75.0));
        assert_eq!(Cell::read("100,000,000,000"), alone(1e11));
    }

    #[test]
    fn text_that_is_no_figure_is_not_read_as_one() {
        for text in
            ["", "–", "-", "token bucket", "52.1 (51.8)", "52.1 (a–b)", "(1–2)", "NaN", "inf"]
        {
            assert_eq!(Cell::read(text), None, "{text}");
        }
    }

    #[test]
    fn spreads_overlap_where_they_have_figures_in_common() {
        let cell = |text| Cell::read(text).unwrap();
        assert!(cell("5 (4–6)").overlaps(&cell("7 (6–8)")));
        assert!(!cell("5 (4–6)").overlaps(&cell("8 (7–9)")));
        assert!(!cell("5").overlaps(&cell("5")));
    }
}
