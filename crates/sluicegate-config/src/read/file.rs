//! Reads the text of a file within bounds, whatever the path leads to.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// The longest text of policies, in bytes. 100,000 rules take 13 MB, and as many customers with a tier 3 to 6 MB.
/// Reading takes 35 times the memory of the text, and 100 times if each value is a single digit.
pub(crate) const LONGEST: usize = 32 * 1024 * 1024;

/// The text of the file at `path`, of at most 32 MiB.
///
/// Only regular files are read. A pipe has no end, a device may have side effects, and opening a pipe waits for a
/// writer. So the kind of file is checked, the file is opened without blocking, and the kind is checked again, because
/// the file may have been replaced.
///
/// # Errors
///
/// There is no such file, it is too long, it is no file of text, or it cannot be read.
pub fn text_of(path: &Path) -> Result<String> {
    check(&std::fs::metadata(path)?)?;
    let file = open(path)?;
    let about = file.metadata()?;
    check(&about)?;
    let expected = usize::try_from(about.len()).unwrap_or(LONGEST);
    let mut bytes = Vec::with_capacity(expected.min(LONGEST) + 1);
    // A file may grow while it is read, and some files have no known length.
    file.take(LONGEST as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > LONGEST {
        return Err(too_long());
    }
    let not_text = |_| Error::new(ErrorKind::InvalidData, "it is not text in UTF-8");
    String::from_utf8(bytes).map_err(not_text)
}

fn check(about: &Metadata) -> Result<()> {
    if !about.is_file() {
        let what = format!("it is {}, expected a file", kind(about));
        return Err(Error::new(ErrorKind::InvalidInput, what));
    }
    if about.len() > LONGEST as u64 {
        return Err(too_long());
    }
    Ok(())
}

/// The message for a text of more than [`LONGEST`] bytes.
pub(crate) fn too_long_in_words() -> String {
    format!("it is longer than {LONGEST} bytes, expected that many at most")
}

fn too_long() -> Error {
    Error::new(ErrorKind::FileTooLarge, too_long_in_words())
}

fn kind(about: &Metadata) -> &'static str {
    if about.is_dir() {
        return "a directory";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = about.file_type();
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
    }
    "something else"
}

#[cfg(unix)]
fn open(path: &Path) -> Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> Result<File> {
    OpenOptions::new().read(true).open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    fn refused(path: &Path) -> String {
        text_of(path).expect_err("no file of text").to_string()
    }

    #[test]
    fn only_regular_files_are_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let made = Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo");
        assert!(made.success());
        let _socket = UnixListener::bind(at("socket")).expect("a socket");
        symlink("/dev/zero", at("zero")).expect("a link");
        symlink("pipe", at("to-pipe")).expect("a link");
        symlink("circle", at("circle")).expect("a link");
        assert_eq!(refused(&at("pipe")), "it is a pipe, expected a file");
        assert_eq!(refused(&at("to-pipe")), "it is a pipe, expected a file");
        assert_eq!(refused(&at("socket")), "it is a socket, expected a file");
        assert_eq!(refused(&at("zero")), "it is a device, expected a file");
        assert_eq!(refused(directory.path()), "it is a directory, expected a file");
        assert!(refused(&at("circle")).contains("symbolic link"), "{}", refused(&at("circle")));
        assert_eq!(text_of(&at("missing")).expect_err("none").kind(), ErrorKind::NotFound);
    }

    /// Between the question and the opening, a pipe may have taken the file's place.
    #[test]
    fn a_pipe_that_nobody_writes_into_is_opened_without_waiting() {
        let directory = tempfile::tempdir().expect("a directory");
        let pipe = directory.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let about = open(&pipe).and_then(|file| file.metadata()).expect("an open pipe");
        assert!(check(&about).is_err());
    }

    #[test]
    fn a_text_has_a_longest_length() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("long.toml");
        fs::write(&path, vec![b'#'; LONGEST]).expect("a file");
        assert_eq!(text_of(&path).expect("as long as can be").len(), LONGEST);
        fs::write(&path, vec![b'#'; LONGEST + 1]).expect("a file");
        assert!(refused(&path).starts_with("it is longer than 33554432 bytes"));
        // A file of holes takes no room on the disk.
        File::create(&path).and_then(|file| file.set_len(1 << 40)).expect("a file");
        assert!(refused(&path).starts_with("it is longer than 33554432 bytes"));
        fs::write(&path, [0xff, 0xfe, b'r', 0]).expect("a file");
        assert_eq!(refused(&path), "it is not text in UTF-8");
    }

    /// The system says that these have no length.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_without_a_length_is_read_to_its_end() {
        assert!(text_of(Path::new("/proc/self/status")).expect("a text").contains("Name:"));
    }
}
