//! The policy files on the guide's page of proxies are valid. Its code is compiled with the documentation.

use std::fs;
use std::path::Path;

use sluicegate_config::{Environment, Policies, read_toml};

#[test]
fn every_file_of_policies_on_the_page_of_proxies_is_one() {
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/sluicegate/src/guide/proxies.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let blocks: Vec<_> = blocks.collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let rule = "[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"100/minute\"]\n";
        let document = read_toml(&format!("{block}{rule}")).unwrap();
        Policies::new(&document, &Environment::new()).unwrap();
    }
}
