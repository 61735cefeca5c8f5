use std::fmt;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Something that is timed.
pub struct Contender<'a> {
    /// Runs so often, and says how long that took.
    run: Box<dyn FnMut(u64) -> Duration + 'a>,
}

impl<'a> Contender<'a> {
    /// `step`, over and over.
    pub fn new(mut step: impl FnMut() + 'a) -> Self {
        Self { run: Box::new(move |times| timed(&mut step, times)) }
    }

    /// A step for each of `threads` threads, made by `step`, all running at once. The time is that of
    /// the slowest.
    pub fn on_threads<S: FnMut() + Send + 'a>(
        threads: usize,
        mut step: impl FnMut(usize) -> S,
    ) -> Self {
        if threads == 1 {
            return Self::new(step(0));
        }
        let mut steps: Vec<S> = (0..threads).map(step).collect();
        Self { run: Box::new(move |times| together(&mut steps, times)) }
    }

    pub(crate) fn run(&mut self, times: u64) -> Duration {
        (self.run)(times)
    }
}

fn timed(step: &mut impl FnMut(), times: u64) -> Duration {
    let started = Instant::now();
    for _ in 0..times {
        step();
    }
    started.elapsed()
}

fn together<S: FnMut() + Send>(steps: &mut [S], times: u64) -> Duration {
    let start = Barrier::new(steps.len());
    let start = &start;
    thread::scope(|scope| {
        let one = |step| {
            scope.spawn(move || {
                start.wait();
                timed(step, times)
            })
        };
        let running: Vec<_> = steps.iter_mut().map(one).collect();
        let slowest = running.into_iter().filter_map(|thread| thread.join().ok()).max();
        slowest.expect("a contender panicked, or has no threads")
    })
}

impl fmt::Debug for Contender<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Contender")
    }
}
