//! What each file of a crate imports, read as text.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One file of a crate.
#[derive(Debug)]
pub(super) struct Source {
    /// Relative to `src`.
    pub(super) file: String,
    /// The path of the module that the file is.
    pub(super) module: Vec<String>,
    pub(super) imports: Vec<Import>,
}

/// A path that a file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    /// Absolute, from the root of the crate.
    pub(super) path: Vec<String>,
    /// The name that the file gives it, if it is a `use` item.
    pub(super) name: Option<String>,
}

/// Reads all files below `src` but tests.
pub(super) fn read_crate(src: &Path) -> Result<Vec<Source>, (PathBuf, io::Error)> {
    let mut sources = Vec::new();
    read_folder(src, src, &mut sources)?;
    sources.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(sources)
}

fn read_folder(
    src: &Path,
    folder: &Path,
    sources: &mut Vec<Source>,
) -> Result<(), (PathBuf, io::Error)> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| (path, error)
    };
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if ["tests", "testing", "loom"].contains(&stem.as_str()) {
            continue;
        }
        if path.is_dir() {
            read_folder(src, &path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(at(&path))?;
            let file = path.strip_prefix(src).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            sources.push(Source::read(&file, &text));
        }
    }
    Ok(())
}

impl Source {
    pub(super) fn read(file: &str, text: &str) -> Self {
        let module = module_of(file);
        let words = words(&code_of(text));
        let mut imports = Vec::new();
        let mut at = 0;
        while at < words.len() {
            if words[at] == "use" && is_item(&words, at) {
                at = read_use(&words, at + 1, &[], &module, &mut imports);
            } else if is_head(&words[at]) && words.get(at + 1).is_some_and(|next| next == "::") {
                let (path, end) = path_at(&words, at);
                imports.extend(absolute(&path, &module).map(|path| Import { path, name: None }));
                at = end;
            } else {
                at += 1;
            }
        }
        Self { file: file.to_owned(), module, imports }
    }

    /// Whether other modules of its folder and below belong to this file's room: it is a `mod.rs` or the root.
    pub(super) fn is_front_page(&self) -> bool {
        ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| self.file.ends_with(name))
    }
}

fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs");
    let mut module: Vec<_> = path.split('/').map(str::to_owned).collect();
    if ["mod", "lib", "main"].contains(&module.last().map_or("", String::as_str)) {
        module.pop();
    }
    module
}

/// Without comments and without the tests at the end.
fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether a `use` item begins here, and not the `use<'a>` of a return type or a word in a text.
fn is_item(words: &[String], at: usize) -> bool {
    let next = words.get(at + 1).map_or("", String::as_str);
    let before = at.checked_sub(1).map_or(";", |before| words[before].as_str());
    let begins = [";", "}", "{", ")", "]", "pub"].contains(&before);
    begins && next.chars().all(|char| char.is_alphanumeric() || char == '_')
}

/// Names, `::`, and single characters.
fn words(code: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let is_name = |char: char| char.is_alphanumeric() || char == '_';
        let len = match first {
            _ if rest.starts_with("::") => 2,
            _ if is_name(first) => rest.find(|char| !is_name(char)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        if !first.is_whitespace() {
            words.push(rest[..len].to_owned());
        }
        rest = &rest[len..];
    }
    words
}

fn is_head(word: &str) -> bool {
    ["crate", "self", "super"].contains(&word)
}

/// The path that begins at `at`, and where it ends.
fn path_at(words: &[String], at: usize) -> (Vec<String>, usize) {
    let mut path = vec![words[at].clone()];
    let mut end = at + 1;
    while words.get(end).is_some_and(|word| word == "::") {
        match words.get(end + 1) {
            Some(name) if name.chars().all(|char| char.is_alphanumeric() || char == '_') => {
                path.push(name.clone());
                end += 2;
            }
            _ => break,
        }
    }
    (path, end)
}

/// Reads one branch of a `use` item that follows `before`, and returns where it ends.
fn read_use(
    words: &[String],
    at: usize,
    before: &[String],
    module: &[String],
    imports: &mut Vec<Import>,
) -> usize {
    let mut path = before.to_vec();
    let mut at = at;
    let mut name = None;
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "{" => {
                at += 1;
                while words.get(at).is_some_and(|word| word != "}" && word != ";") {
                    at = read_use(words, at, &path, module, imports);
                    if words.get(at).is_some_and(|word| word == ",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "as" => {
                name = words.get(at + 1).cloned();
                at += 2;
            }
            ";" | "," | "}" => break,
            "::" => at += 1,
            _ => {
                path.push(word.clone());
                at += 1;
            }
        }
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = name.or_else(|| path.last().cloned());
    imports.extend(absolute(&path, module).map(|path| Import { path, name }));
    at
}

/// The path from the root of the crate; `None` if it leads to another crate.
fn absolute(path: &[String], module: &[String]) -> Option<Vec<String>> {
    let mut base = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "self" | "super" => module.to_vec(),
        _ => return None,
    };
    for (at, name) in path.iter().enumerate() {
        match name.as_str() {
            "crate" | "self" if at == 0 => {}
            "super" => {
                base.pop()?;
            }
            name => base.push(name.to_owned()),
        }
    }
    Some(base)
}
