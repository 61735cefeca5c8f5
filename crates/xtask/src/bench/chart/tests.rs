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
    assert!(svg.contains("<title id=\"title\">The table, ns: u64</title>"), "{svg}");
    assert!(
        svg.contains("floor: 5 at 1, 100 at 1 M. sluicegate Limiter: 12 at 1, 130 at 1 M."),
        "{svg}"
    );
    assert!(svg.contains(">governor, 430</text>"), "{svg}");
    assert!(!svg.contains('÷') && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    // All lines have the same populations, so they begin and end at the same places.
    assert_eq!(svg.matches("M72.0 ").count() - svg.matches("M72.0 56V").count(), 9, "{svg}");
}

#[test]
fn a_bar_is_drawn_for_each_contender() {
    let svg = drawn("bars", "The layer, ns").unwrap();
    assert!(
        svg.contains("axum, no layer: 380. sluicegate &amp; more: 800. tower_governor: 16.2 k.")
    );
    assert!(svg.contains(">The axis is logarithmic.</text>"), "{svg}");
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
