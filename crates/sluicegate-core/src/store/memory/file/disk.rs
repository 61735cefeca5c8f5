//! The file and its neighbours, on a disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Where the file is written. Tests make one up.
pub(super) trait Disk: Send + 'static {
    /// Reads the file; `None` if there is none.
    fn read(&mut self) -> io::Result<Option<Vec<u8>>>;

    /// Moves a file that cannot be read aside.
    fn set_aside(&mut self) -> io::Result<()>;

    /// Begins a new file beside the old one.
    fn begin(&mut self) -> io::Result<()>;

    /// Appends to the file that was begun last.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Waits until everything that was appended is on the disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Puts the file that was begun last in the place of the old one.
    fn publish(&mut self) -> io::Result<()>;
}

/// A file in a folder, locked against other processes.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    file: Option<File>,
    /// Held until the end, and by the system until the process ends.
    _lock: File,
}

impl Folder {
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        // An absolute path, because a process can change its working folder.
        let path = std::path::absolute(path)?;
        if path.is_dir() {
            return Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder, expected a file"));
        }
        // Not the file itself, because each new file takes its place.
        let lock = lock(&beside(&path, ".lock"))?;
        Ok(Self { path, file: None, _lock: lock })
    }
}

impl Disk for Folder {
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(&self.path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn set_aside(&mut self) -> io::Result<()> {
        fs::rename(&self.path, beside(&self.path, ".bad"))
    }

    fn begin(&mut self) -> io::Result<()> {
        let path = beside(&self.path, ".new");
        self.file = None;
        // What a process left behind may belong to another user, or be readable for all.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.file = Some(private().create_new(true).open(path)?);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file()?.write_all(bytes)
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
}

impl Folder {
    fn file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| io::Error::other("no file was begun"))
    }
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
