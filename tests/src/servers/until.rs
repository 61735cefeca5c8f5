use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to start, to notice that another is gone, or to agree with the others.
const PATIENCE: Duration = Duration::from_secs(180);

/// The time between two questions.
const PAUSE: Duration = Duration::from_millis(5);

/// Calls `ask` until it returns an answer, and returns that.
///
/// # Panics
///
/// If there is no answer within three minutes. The message contains `what`.
#[expect(
    clippy::disallowed_methods,
    reason = "a server's process has no clock that a test could turn"
)]
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(started.elapsed() < PATIENCE, "waited for {what} in vain, for {PATIENCE:?}");
        thread::sleep(PAUSE);
    }
}
