//! The rivals that the benchmarks run, and their releases.

/// The rivals: dependencies that the manifest pins to one release.
pub(super) fn rivals(manifest: &str) -> Vec<String> {
    let pinned = |line: &&str| line.contains("\"=");
    let name = |line: &str| line.split(['=', '.', ' ']).next().unwrap_or_default().to_owned();
    manifest.lines().filter(pinned).map(name).collect()
}

/// The rivals with their releases in the lock file.
pub(super) fn releases(manifest: &str, lock: &str) -> Vec<String> {
    let release = |name: &String| {
        let (_, package) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
        Some(format!("{name} {}", package.split('"').next()?))
    };
    rivals(manifest).iter().filter_map(release).collect()
}
