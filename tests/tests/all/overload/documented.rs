//! The setting that the documentation shows is the one that is measured.

use std::time::Duration;

use sluicegate_tests::overload::{QUEUE, SHARE};

/// Each page that shows or measures a throttle by its share of the processors.
const PAGES: [(&str, &str); 4] = [
    ("README.md", include_str!("../../../../crates/sluicegate-throttle/README.md")),
    ("guide/overload.md", include_str!("../../../../crates/sluicegate/src/guide/overload.md")),
    ("wire/serve.rs", include_str!("../../../../benches/src/wire/serve.rs")),
    ("critical_path.rs", include_str!("../../../../examples/critical_path.rs")),
];

#[test]
fn what_is_shown_is_what_is_measured() {
    let queue = Duration::from_micros(QUEUE).as_millis();
    let shown = format!("Throttle::builder().cpu({SHARE:?}).queue(Duration::from_millis({queue}))");
    for (name, page) in PAGES {
        let code = page.lines().map(|line| line.split("//").next().unwrap_or_default());
        let code: String = code.flat_map(str::split_whitespace).collect();
        assert!(code.contains(&shown), "{name} does not have `{shown}`");
        let other =
            code.split(".cpu(").skip(1).find(|rest| !rest.starts_with(&format!("{SHARE:?})")));
        assert_eq!(other, None, "{name} has another share");
    }
}
