use super::*;

#[test]
fn the_throttle_of_the_readme_works() {
    let readme = include_str!("../../../README.md");
    let (_, after) = readme.split_once("```toml\nrules = []").expect("the file with a throttle");
    let (file, _) = after.split_once("```").unwrap();
    let document = read_toml(&format!("rules = []{file}")).unwrap();
    let live = Live::of(Policies::new(&document, &Environment::new()).unwrap());
    assert!(live.throttle().unwrap().throttle().snapshot().cost_per_second.is_some());
}
