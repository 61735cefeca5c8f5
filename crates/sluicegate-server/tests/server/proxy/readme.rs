//! The files in the README are valid.

use sluicegate_config::{Environment, Policies, read_toml};

#[test]
fn every_file_in_the_readme_is_one_of_a_proxy() {
    let page = include_str!("../../../README.md");
    let (_, part) = page.split_once("## The proxy\n").expect("its part");
    let blocks = part.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let blocks: Vec<_> = blocks.collect();
    assert_eq!(blocks.len(), 2);
    for block in &blocks {
        let document = read_toml(block).expect("a document");
        let policies = Policies::new(&document, &Environment::new()).expect("policies");
        assert!(policies.listen().is_some() && policies.upstream().is_some(), "{block}");
    }
    let document = read_toml(blocks[1]).expect("a document");
    let policies = Policies::new(&document, &Environment::new()).expect("policies");
    let tls = policies.upstream().and_then(|upstream| upstream.tls.as_ref()).expect("TLS");
    assert_eq!(tls.server_name.as_deref(), Some("app.internal"));
    assert!(tls.authorities.is_some() && tls.identity.is_some());
}
