use super::*;

#[test]
fn what_a_reload_would_change_is_told_and_does_not_come_into_force() {
    let place = Place::with(&everybody(5));
    let live = Live::open(place.file(), Environment::new()).expect("valid");
    assert!(live.pending().expect("valid").is_empty());
    place.write(&format!(
        "{}[[rules]]\nname = \"new\"\nkey = \"ip\"\nlimits = [\"1/day\"]\n",
        everybody(6)
    ));
    let before = live.policies();
    let pending = live.pending().expect("valid");
    assert_eq!(pending.added, ["new"]);
    assert_eq!(pending.limits[0].name, "all");
    assert!(std::sync::Arc::ptr_eq(&before, &live.policies()));
    assert_eq!(live.reload().expect("valid"), pending);
    assert!(live.pending().expect("valid").is_empty());
}

#[test]
fn what_would_keep_a_file_from_coming_into_force_is_told_with_its_line() {
    let place = Place::with(&everybody(5));
    let live = Live::open(place.file(), Environment::new()).expect("valid");
    place.write("[[rules]]\nname = \"all\"\nkey = \"global\"\nlimits = [\"5/fortnight\"]\n");
    let error = live.pending().expect_err("not valid").to_string();
    assert!(error.contains("policies.toml:4:"), "{error}");
    std::fs::remove_file(place.file()).expect("removed");
    assert!(live.pending().is_err());
    let without_file = Live::of(std::sync::Arc::unwrap_or_clone(live.policies()));
    assert!(without_file.pending().is_err());
}
