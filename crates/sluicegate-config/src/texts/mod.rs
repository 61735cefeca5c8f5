//! For programs whose policies are in several files, or in directories: their texts, read within bounds and watched.
//!
//! ```
//! use sluicegate_config::texts::Texts;
//!
//! let mut texts = Texts::new(&["yaml", "yml"]);
//! texts.add("/etc/no/such/directory");
//! for (path, text) in texts.read() {
//!     match text {
//!         Ok(text) => println!("{}: {} bytes", path.display(), text.len()),
//!         Err(why) => println!("{}: {why}", path.display()),
//!     }
//! }
//! ```

use std::collections::BTreeMap;
#[cfg(feature = "watch")]
use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};
#[cfg(feature = "watch")]
use std::sync::Arc;

#[cfg(feature = "watch")]
use crate::live::{Follow, Snapshot, WatchError, Watching};
use crate::read::text_of;

#[cfg(test)]
mod tests;

/// The most files that are read together.
const MOST: usize = 4_096;

/// The most bytes of all texts together.
const LARGEST: usize = 64 * 1024 * 1024;

/// How often files are read until two readings in a row find the same.
const TURNS: usize = 5;

/// Files, and directories of files, whose texts are policies together.
///
/// Each is read within the bounds of a [policy file](crate::Live::watch): a regular file of at most 32 MiB. All together
/// are at most 4,096 files and 64 MiB.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    paths: Vec<PathBuf>,
    extensions: &'static [&'static str],
}

/// What a reading has found: the text of each file, or why it cannot be read, in the order of paths. A directory that
/// cannot be read, or has no such file, is in it by its own path.
pub type Found = BTreeMap<PathBuf, Result<String, String>>;

impl Texts {
    /// No files. In directories, files with these extensions count, such as `yaml`. Those whose name begins with a dot
    /// do not.
    pub fn new(extensions: &'static [&'static str]) -> Self {
        Self { paths: Vec::new(), extensions }
    }

    /// Adds the file at `path`, or those of the directory at `path`. A later change of the working directory does not
    /// matter.
    pub fn add(&mut self, path: impl Into<PathBuf>) {
        let path = path.into();
        self.paths.push(std::path::absolute(&path).unwrap_or(path));
    }

    /// Reads all files, until two readings in a row find the same, so that files which are replaced meanwhile are all
    /// old or all new. After five readings the last one counts.
    pub fn read(&self) -> Found {
        // A directory may be exchanged between two of its files. Then the next reading finds other texts.
        let mut found = self.read_once();
        for _ in 1..TURNS {
            let again = self.read_once();
            if again == found {
                break;
            }
            found = again;
        }
        found
    }

    fn read_once(&self) -> Found {
        let mut found = Found::new();
        let mut left = LARGEST;
        for path in &self.paths {
            let files = match self.files(path) {
                Ok(files) => files,
                Err(why) => {
                    found.insert(path.clone(), Err(why));
                    continue;
                }
            };
            for file in files {
                if found.contains_key(&file) {
                    continue;
                }
                if found.len() >= MOST {
                    found.insert(path.clone(), Err(format!("there are more than {MOST} files")));
                    return found;
                }
                let text = text_of(&file).map_err(|error| in_words(&error));
                let length = text.as_ref().map_or(0, String::len);
                let Some(rest) = left.checked_sub(length) else {
                    let why = format!("all files together are longer than {LARGEST} bytes");
                    found.insert(file, Err(why));
                    return found;
                };
                left = rest;
                found.insert(file, text);
            }
        }
        found
    }

    /// The files to read: those at the paths, and those of directories.
    ///
    /// # Errors
    ///
    /// If a directory cannot be read, or has no such file.
    pub fn list(&self) -> Result<Vec<PathBuf>, String> {
        let mut all = Vec::new();
        for path in &self.paths {
            all.extend(self.files(path)?);
        }
        all.sort();
        all.dedup();
        Ok(all)
    }

    /// The file at `path`, or those of the directory.
    fn files(&self, path: &Path) -> Result<Vec<PathBuf>, String> {
        if !path.is_dir() {
            return Ok(vec![path.to_owned()]);
        }
        let mut files = Vec::new();
        for entry in path.read_dir().map_err(|error| in_words(&error))? {
            let entry = entry.map_err(|error| in_words(&error))?;
            if self.counts(&entry) {
                files.push(entry.path());
            }
        }
        if files.is_empty() {
            let endings: Vec<_> = self.extensions.iter().map(|end| format!(".{end}")).collect();
            return Err(format!("the directory has no file that ends in {}", endings.join(" or ")));
        }
        Ok(files)
    }

    /// Whether an entry of a directory is one of the files. A link that leads nowhere is, so that it is reported.
    fn counts(&self, entry: &DirEntry) -> bool {
        let path = entry.path();
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let extension = path.extension().unwrap_or_default();
        !is_hidden && self.extensions.iter().any(|one| extension == *one) && !path.is_dir()
    }
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => format!("it cannot be read: {error}"),
    }
}

#[cfg(feature = "watch")]
/// What wants to know when files change: see [`Texts::watch`].
pub trait Follower: Send + Sync + 'static {
    /// Whether this is what was read last.
    fn knows(&self, found: &Found) -> bool;

    /// Called with what was found, once it has been found twice.
    fn changed(&self, found: Found);

    /// Called when a directory cannot be watched, for this reason. Another attempt follows each second.
    fn unwatched(&self, reason: &str);
}

#[cfg(feature = "watch")]
impl Texts {
    /// Tells `follower` when the files change, as [`Live::watch`](crate::Live::watch) does for one file, until the
    /// returned value is dropped. Changes that happen close together are told once, and so is the exchange of a whole
    /// directory, such as that of a mounted `ConfigMap` of Kubernetes.
    ///
    /// # Errors
    ///
    /// If the system cannot watch a directory.
    pub fn watch(&self, follower: Arc<impl Follower>) -> Result<Watching, WatchError> {
        Watching::begin(Following { texts: self.clone(), follower })
    }
}

#[cfg(feature = "watch")]
struct Following<F> {
    texts: Texts,
    follower: Arc<F>,
}

#[cfg(feature = "watch")]
impl<F: Follower> Follow for Following<F> {
    type Found = Found;

    fn paths(&self) -> Vec<PathBuf> {
        let mut paths: BTreeSet<_> = self.texts.paths.iter().cloned().collect();
        // A link in a directory changes when the file at its end does.
        let files = self.texts.paths.iter().filter_map(|path| self.texts.files(path).ok());
        paths.extend(files.flatten().filter(|file| file.is_symlink()));
        paths.into_iter().collect()
    }

    fn look(&self, snapshot: &mut Option<Snapshot<Found>>) -> bool {
        let found = self.texts.read();
        let is_known = self.follower.knows(&found);
        if let Some(found) = Snapshot::settled(snapshot, found, is_known) {
            self.follower.changed(found);
        }
        // Most errors of a set of files last until somebody changes one, and it may be large.
        true
    }

    fn unwatched(&self, reason: String) {
        self.follower.unwatched(&reason);
    }
}
