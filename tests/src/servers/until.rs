use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to start, to notice another's death, or to agree with the others.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often it is asked.
const PAUSE: Duration = Duration::from_millis(5);

/// Asks again and again until there is an answer, and returns it.
///
/// # Panics
///
/// After thirty seconds without one, saying `what` was waited for.
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
