//! Messages that nobody would read otherwise. If no `tracing` subscriber records events, problems that keep limits
//! from working are written to standard error, once.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// The largest number of messages that a process writes. A set-up lacks one or two things, but errors of a store may
/// contain ports and addresses, and be different each time.
const MOST: usize = 16;

/// What has been written in this process.
static WRITTEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Whether a subscriber records events of that level from here.
#[cfg(feature = "tracing")]
macro_rules! is_recorded {
    ($level:ident) => {
        tracing::event_enabled!(tracing::Level::$level)
    };
}
#[cfg(not(feature = "tracing"))]
macro_rules! is_recorded {
    ($level:ident) => {
        false
    };
}
pub(crate) use is_recorded;

/// Writes a sentence to standard error, unless it is recorded elsewhere or has been written.
pub(crate) fn write_unless(recorded: bool, sentence: impl FnOnce() -> String) {
    if !recorded {
        write_once(&WRITTEN, sentence(), &mut io::stderr());
    }
}

fn write_once(written: &Mutex<BTreeSet<String>>, sentence: String, to: &mut impl Write) {
    let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
    if written.len() < MOST && !written.contains(&sentence) {
        // A closed standard error has no readers.
        let _ = writeln!(
            to,
            "sluicegate: {sentence} (said once, as no `tracing` subscriber records this)"
        );
        written.insert(sentence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_is_said_once_and_not_very_many() {
        let (written, mut bytes) = (Mutex::default(), Vec::new());
        for at in (0..100).chain(0..100) {
            write_once(&written, format!("error {at}"), &mut bytes);
        }
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(text.lines().count(), MOST);
        assert!(text.starts_with("sluicegate: error 0 (said once"), "{text}");
    }
}
