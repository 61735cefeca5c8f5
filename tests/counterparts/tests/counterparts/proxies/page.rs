//! The page that shows the configurations.

use std::collections::BTreeSet;

use sluicegate_counterparts::root;

#[test]
fn the_page_shows_the_configurations_that_are_tested() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a file");
    let page = read("docs/for-any-language.md");
    let mut shown = BTreeSet::new();
    for (index, block) in page.split("```").enumerate() {
        // Text between blocks, or what to type.
        let Some((file, text)) = block.split_once('\n').filter(|_| index % 2 == 1) else {
            continue;
        };
        let Some((_, file)) = file.split_once(' ') else { continue };
        shown.insert(file.to_owned());
        let whole = read(&format!("docs/proxies/{file}"));
        assert!(unindented(&whole).contains(&unindented(text)), "{file} does not contain:\n{text}");
    }
    let files = std::fs::read_dir(root().join("docs/proxies")).expect("a directory");
    let files = files.map(|file| file.expect("a file").file_name().into_string().expect("a name"));
    assert_eq!(shown, files.collect());
}

/// The lines of a text without the space before them.
fn unindented(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim())).collect()
}
