//! The file and its neighbours, on a disk.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::format::FILE;

/// Where the file is written. Tests make one up.
pub(super) trait Disk: Send + 'static {
    /// Reads the file; `None` if there is none. Of a file of something else, only the first bytes are read.
    fn read(&mut self) -> io::Result<Option<Vec<u8>>>;

    /// Moves a file that cannot be read aside.
    fn set_aside(&mut self) -> io::Result<()>;

    /// Whether the file that was published last is in its place, as it was written. Otherwise nobody would read what is
    /// appended to it.
    ///
    /// # Errors
    ///
    /// If another process has taken the place meanwhile.
    fn is_in_place(&mut self) -> io::Result<bool>;

    /// Begins a new file beside the old one.
    fn begin(&mut self) -> io::Result<()>;

    /// Appends to the file that was begun last.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Waits until everything that was appended is on the disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Puts the file that was begun last in the place of the old one.
    fn publish(&mut self) -> io::Result<()>;

    /// Removes a new file that was begun and not published: on a full disk, it takes the space that the next one needs.
    fn abandon(&mut self);
}

/// A file in a folder, locked against other processes.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    file: Option<File>,
    /// How many bytes were appended to it.
    length: u64,
    /// Locked until the end.
    pub(super) lock: File,
}

impl Folder {
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        // An absolute path, because a process can change its working folder.
        let path = without_links(std::path::absolute(path)?)?;
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => {
                let message = "it is a folder, expected a file";
                return Err(io::Error::new(ErrorKind::IsADirectory, message));
            }
            // Reading it could take for ever, and it must not be moved aside.
            Ok(found) if !found.is_file() => {
                let message = "it is a device, a pipe or a socket, expected a file";
                return Err(io::Error::new(ErrorKind::InvalidInput, message));
            }
            _ => {}
        }
        // Not the file itself, because each new file takes its place.
        let lock = lock(&beside(&path, ".lock"))?;
        Ok(Self { path, file: None, length: 0, lock })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing the file is not enough. A child process has it open too from its fork until it runs its own program,
        // and the lock belongs to all who have it open.
        #[cfg(unix)]
        let _ = rustix::fs::flock(&self.lock, rustix::fs::FlockOperation::Unlock);
    }
}

impl Disk for Folder {
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        (&mut file).take(FILE.len() as u64).read_to_end(&mut bytes)?;
        if bytes == FILE {
            file.read_to_end(&mut bytes)?;
        }
        Ok(Some(bytes))
    }

    fn set_aside(&mut self) -> io::Result<()> {
        let aside = beside(&self.path, ".bad");
        fs::rename(&self.path, &aside).map_err(|error| {
            let aside = aside.display();
            let message = format!("it cannot be read, nor moved aside to {aside}: {error}");
            io::Error::new(error.kind(), message)
        })
    }

    fn is_in_place(&mut self) -> io::Result<bool> {
        let path = beside(&self.path, ".lock");
        if !is_at(&self.lock, &path) {
            // Somebody has removed it, and so another process may have it.
            self.lock = lock(&path)?;
        }
        let Some(file) = &self.file else { return Ok(false) };
        let is_whole = file.metadata().is_ok_and(|file| file.len() == self.length);
        Ok(is_whole && is_at(file, &self.path))
    }

    fn begin(&mut self) -> io::Result<()> {
        let path = beside(&self.path, ".new");
        (self.file, self.length) = (None, 0);
        // What a process left behind may belong to another user, or be readable for all.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.file = Some(private().create_new(true).open(path)?);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file()?.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file()?.sync_data()
    }

    fn publish(&mut self) -> io::Result<()> {
        fs::rename(beside(&self.path, ".new"), &self.path)?;
        // Until the folder is on the disk, a loss of power may bring back the old file.
        #[cfg(unix)]
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }

    fn abandon(&mut self) {
        // The space is free when the file is closed.
        (self.file, self.length) = (None, 0);
        // The error that led here is told. If this fails too, the next file begins with it.
        let _ = fs::remove_file(beside(&self.path, ".new"));
    }
}

impl Folder {
    fn file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| io::Error::other("no file was begun"))
    }
}

/// The path of the file that a link names, also if that is not there yet. Each process that has the file locks it in one
/// place, and a new file does not take the place of the link.
fn without_links(path: PathBuf) -> io::Result<PathBuf> {
    match fs::canonicalize(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::read_link(&path) {
            // Links in a circle are another error.
            Ok(to) => without_links(path.parent().unwrap_or(&path).join(to)),
            Err(_) => Ok(path),
        },
        found => found,
    }
}

/// Whether an open file is still the one at this path.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(file), Ok(found)) => is_same(&file, &found),
        _ => false,
    }
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Without a number for each file, the length has to do.
#[cfg(not(unix))]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    other.is_file() && one.len() == other.len()
}

/// The path with something appended to the name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Options for files that only the user of this process can read: they have the secret of the keys.
fn private() -> OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens and locks a file. The system gives the lock back when the process ends, however that is.
fn lock(path: &Path) -> io::Result<File> {
    let mut options = private();
    options.create(true).truncate(false);
    #[cfg(windows)]
    std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 0);
    let taken = |error| io::Error::new(error, "another process, or another store, has it open");
    match options.open(path) {
        #[cfg(unix)]
        Ok(file) => {
            match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Ok(file),
                Err(error) if error == rustix::io::Errno::WOULDBLOCK => {
                    Err(taken(ErrorKind::WouldBlock))
                }
                Err(error) => Err(error.into()),
            }
        }
        // A file that is open and not shared: ERROR_SHARING_VIOLATION.
        Err(error) if cfg!(windows) && error.raw_os_error() == Some(32) => {
            Err(taken(ErrorKind::WouldBlock))
        }
        #[cfg(windows)]
        Ok(file) => Ok(file),
        #[cfg(not(any(unix, windows)))]
        Ok(_) => Err(io::Error::new(ErrorKind::Unsupported, "files cannot be locked here")),
        Err(error) => Err(error),
    }
}
