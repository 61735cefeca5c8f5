//! A disk that remembers everything that was asked of it, so that a test can stop it at any moment.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::disk::Disk;

/// What was asked of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stored {
    Begin,
    Append(Vec<u8>),
    Sync,
    Publish,
    SetAside,
}

/// Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorder(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    file: Option<Vec<u8>>,
    log: Vec<Stored>,
    /// What is asked from now on fails.
    fails: bool,
    /// A function to run, and during which append.
    hook: Option<(usize, Hook)>,
}

struct Hook(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

impl Recorder {
    pub(super) fn new(file: Option<Vec<u8>>) -> Self {
        Self(Arc::new(Mutex::new(State { file, ..State::default() })))
    }

    fn with<T>(&self, run: impl FnOnce(&mut State) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn log(&self) -> Vec<Stored> {
        self.with(|state| state.log.clone())
    }

    pub(super) fn set_failing(&self, fails: bool) {
        self.with(|state| state.fails = fails);
    }

    /// Runs `run` during the append with that number, counted from 1.
    pub(super) fn once_appended(&self, number: usize, run: impl FnOnce() + Send + 'static) {
        self.with(|state| state.hook = Some((number, Hook(Box::new(run)))));
    }

    pub(super) fn is_hook_done(&self) -> bool {
        self.with(|state| state.hook.is_none())
    }

    /// The file as a program reads it while the machine runs.
    pub(super) fn file(&self) -> Vec<u8> {
        let mut published = Vec::new();
        let mut begun: Option<Vec<u8>> = None;
        for stored in self.log() {
            match stored {
                Stored::Begin => begun = Some(Vec::new()),
                Stored::Append(bytes) => match &mut begun {
                    Some(begun) => begun.extend(bytes),
                    None => published.extend(bytes),
                },
                Stored::Publish => published = begun.take().expect("a file was begun"),
                Stored::Sync | Stored::SetAside => {}
            }
        }
        published
    }

    fn record(&self, stored: Stored) -> io::Result<()> {
        self.with(|state| {
            if state.fails {
                return Err(io::Error::other("no space left"));
            }
            state.log.push(stored);
            Ok(())
        })
    }
}

impl Disk for Recorder {
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.with(|state| state.file.clone()))
    }

    fn set_aside(&mut self) -> io::Result<()> {
        self.record(Stored::SetAside)
    }

    fn is_in_place(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    fn begin(&mut self) -> io::Result<()> {
        self.record(Stored::Begin)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let hook = self.with(|state| {
            let (number, _) = state.hook.as_mut()?;
            *number -= 1;
            if *number == 0 { state.hook.take() } else { None }
        });
        if let Some((_, Hook(run))) = hook {
            run();
        }
        self.record(Stored::Append(bytes.to_vec()))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.record(Stored::Sync)
    }

    fn publish(&mut self) -> io::Result<()> {
        self.record(Stored::Publish)
    }

    fn abandon(&mut self) {}
}
