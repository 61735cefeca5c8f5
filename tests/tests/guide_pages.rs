//! Every page of the guide is shown in `sluicegate::guide` and tested by this package.

use std::fs;
use std::path::Path;

#[test]
fn every_page_of_the_guide_is_shown_and_tested() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = tests.join("../crates/sluicegate/src/guide");
    let shown = fs::read_to_string(guide.join("mod.rs")).unwrap();
    let tested = fs::read_to_string(tests.join("src/lib.rs")).unwrap();

    let names = fs::read_dir(&guide).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    let pages: Vec<_> = names.iter().filter_map(|name| name.strip_suffix(".md")).collect();
    assert!(pages.len() > 10);
    for page in pages {
        assert!(shown.contains(&format!("include_str!(\"{page}.md\")")), "not shown: {page}");
        assert!(shown.contains(&format!("[`{page}`]")), "not in the contents: {page}");
        assert!(tested.contains(&format!("guide/{page}.md\")")), "not tested: {page}");
    }
}

#[test]
fn the_policies_on_the_page_about_tokens_are_policies() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/sluicegate/src/guide");
    let page = fs::read_to_string(guide.join("tokens.md")).unwrap();
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut count = 0;
    for block in blocks {
        let document = sluicegate_config::read_toml(block).unwrap();
        let environment = sluicegate_config::Environment::new();
        sluicegate_config::Policies::new(&document, &environment).unwrap();
        count += 1;
    }
    assert_eq!(count, 1);
}
