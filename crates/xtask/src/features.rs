//! The features of a crate, read from its manifest, so that no check forgets a new one.
//!
//! This reads the relevant lines in the style of this repository. A line that it cannot read for certain is an error,
//! so that no feature is overlooked.

/// The names under `[features]`, in their order, `default` among them.
pub(crate) fn declared_in(manifest: &str) -> Result<Vec<String>, Unreadable> {
    let mut features = Vec::new();
    let mut section = String::new();
    let mut open_brackets = 0;

    for (index, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let unreadable = |problem: String| Err(Unreadable { line: index + 1, problem });

        if line.is_empty() {
            continue;
        }
        if open_brackets > 0 {
            open_brackets += brackets(line);
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').trim().to_owned();
            continue;
        }
        if section.is_empty() && line.starts_with("features") {
            return unreadable("features belong into a [features] table".to_owned());
        }
        if section == "features" {
            let Some((name, value)) = line.split_once('=') else {
                return unreadable(format!("`{line}` does not name a feature"));
            };
            features.push(name.trim().trim_matches('"').to_owned());
            open_brackets = brackets(value);
        }
        if let Some(name) = optional_dependency(&section, line)
            && !manifest.contains(&format!("\"dep:{name}\""))
        {
            return unreadable(format!(
                "the optional dependency `{name}` is a feature that nobody wrote down: \
                 name it as \"dep:{name}\" in [features]"
            ));
        }
    }
    Ok(features)
}

/// A line of a manifest that hides a feature, or may hide one.
#[derive(Debug, PartialEq)]
pub(crate) struct Unreadable {
    pub(crate) line: usize,
    pub(crate) problem: String,
}

/// The name of the dependency that this line makes optional.
fn optional_dependency<'a>(section: &'a str, line: &'a str) -> Option<&'a str> {
    if !line.replace(' ', "").contains("optional=true") {
        return None;
    }
    if section.ends_with("dependencies") {
        line.split(['=', '.', ' ']).next()
    } else {
        let (table, name) = section.rsplit_once('.')?;
        table.ends_with("dependencies").then_some(name)
    }
}

fn brackets(text: &str) -> i32 {
    text.chars().map(|c| i32::from(c == '[') - i32::from(c == ']')).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(manifest: &str) -> Vec<String> {
        declared_in(manifest).expect("a readable manifest")
    }

    fn problem(manifest: &str) -> (usize, String) {
        let Unreadable { line, problem } = declared_in(manifest).expect_err("an unreadable line");
        (line, problem)
    }

    #[test]
    fn every_feature_is_found_however_its_list_is_broken_over_lines() {
        let manifest = r#"
            [package]
            name = "x" # not a feature
            [features]
            default = ["std"]
            # Reads the clock.
            std = []
            "quoted" = [
                "dep:tracing", # [a bracket in a comment
                "std",
            ]
            last = ["quoted"]
            [dependencies]
            tracing = { version = "0.1", optional = true }
        "#;
        assert_eq!(names(manifest), ["default", "std", "quoted", "last"]);
    }

    #[test]
    fn a_crate_without_features_has_none() {
        assert!(names("[package]\nname = \"x\"\n[dependencies]\nhttp = \"1\"\n").is_empty());
    }

    #[test]
    fn an_optional_dependency_is_not_a_feature_by_the_back_door() {
        for manifest in [
            "[dependencies]\ntracing = { workspace = true, optional = true }",
            "[dependencies]\ntracing.optional = true",
            "[target.'cfg(unix)'.dependencies.tracing]\noptional=true",
        ] {
            let (line, problem) = problem(manifest);
            assert_eq!(line, 2, "{manifest}");
            assert!(problem.contains("`tracing`"), "{manifest}: {problem}");
        }
    }

    #[test]
    fn features_outside_their_table_are_refused() {
        assert_eq!(problem("features.std = []").0, 1);
        assert_eq!(problem("[features]\nstd").0, 2);
    }
}
