//! Messages that nobody would read otherwise. If no `tracing` subscriber records events, problems that keep limits
//! from working are written to standard error, once.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// The largest number of messages that a process writes. A set-up lacks one or two things, but errors of a store may
/// contain ports and addresses, and be different each time.
const MOST: usize = 16;

/// What has been written in this process.
static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Whether a subscriber records events of that level from here.
#[cfg(feature = "tracing")]
macro_rules! heard {
    ($level:ident) => {
        tracing::event_enabled!(tracing::Level::$level)
    };
}
#[cfg(not(feature = "tracing"))]
macro_rules! heard {
    ($level:ident) => {
        false
    };
}
pub(crate) use heard;

/// Writes a sentence to standard error, unless it is recorded elsewhere or has been written.
pub(crate) fn say_unless(recorded: bool, sentence: impl FnOnce() -> String) {
    if !recorded {
        say(&TOLD, sentence(), &mut io::stderr());
    }
}

fn say(told: &Mutex<BTreeSet<String>>, sentence: String, to: &mut impl Write) {
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    if told.len() < MOST && !told.contains(&sentence) {
        // A closed standard error has no readers.
        let _ = writeln!(
            to,
            "sluicegate: {sentence} (said once, as no `tracing` subscriber records this)"
        );
        told.insert(sentence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_is_said_once_and_not_very_many() {
        let told = Mutex::default();
        let mut written = Vec::new();
        for at in (0..100).chain(0..100) {
            say(&told, format!("error {at}"), &mut written);
        }
        let written = String::from_utf8(written).expect("text");
        assert_eq!(written.lines().count(), MOST);
        assert!(written.starts_with("sluicegate: error 0 (said once"), "{written}");
    }
}
