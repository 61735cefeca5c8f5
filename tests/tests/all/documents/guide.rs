//! Every page of the guide is shown in `sluicegate::guide` and tested by this package.

use std::fs;

use sluicegate_config::{Environment, Policies, read_toml};

#[test]
fn every_page_of_the_guide_is_shown_and_tested() {
    let guide = super::root().join("crates/sluicegate/src/guide");
    let shown = fs::read_to_string(guide.join("mod.rs")).unwrap();
    let tested = fs::read_to_string(super::root().join("tests/src/lib.rs")).unwrap();

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

/// The code of a page is compiled with the documentation. Its policy files are not.
#[test]
fn every_policy_file_on_a_page_is_valid() {
    const RULE: &str = "[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"100/minute\"]\n";
    for (page, more, count) in [("tokens", "", 1), ("proxies", RULE, 2), ("which_number", "", 1)] {
        let page = super::root().join(format!("crates/sluicegate/src/guide/{page}.md"));
        let page = fs::read_to_string(page).unwrap();
        let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let blocks: Vec<_> = blocks.collect();
        assert_eq!(blocks.len(), count);
        for block in blocks {
            let document = read_toml(&format!("{block}{more}")).unwrap();
            Policies::new(&document, &Environment::new()).unwrap();
        }
    }
}
