//! Callers that leave while they wait.

use sluicegate_client::smooth::{Refilled, Spread};

use super::*;

#[tokio::test]
async fn the_time_of_the_last_caller_is_given_to_the_next_one() {
    let gate = Gate::new(bursty(1.0), |settings| settings);
    gate.until(gate.send(get())).await.unwrap();
    let waiting: Vec<_> = (0..3).map(|_| gate.send(get())).collect();
    settle().await;
    for request in waiting.into_iter().rev() {
        request.abort();
        settle().await;
    }
    gate.until(gate.send(get())).await.unwrap();
    assert_eq!(gate.left(), [0, 1_000]);
}

#[tokio::test]
async fn a_caller_that_leaves_makes_room_for_those_behind_it() {
    let gate = Gate::new(bursty(1.0), |settings| settings);
    let sent: Vec<_> = (0..4).map(|_| gate.send(get())).collect();
    settle().await;
    sent[1].abort();
    gate.pass(5_000).await;
    assert_eq!(gate.left(), [0, 1_000, 2_000]);
}

#[tokio::test]
async fn no_second_has_more_than_its_share_when_callers_leave() {
    let methods: [fn() -> Box<dyn Method>; 3] = [
        || Box::new(bursty(10.0)),
        || Box::new(Refilled::new(10, SECOND).unwrap()),
        || Box::new(Spread::new(10, SECOND, 10, 200 * MS).unwrap()),
    ];
    let mut random = fastrand::Rng::with_seed(7);
    for (number, method) in methods.iter().enumerate() {
        let gate = Gate::new(Erased(method()), |settings| settings);
        let mut waiting: Vec<Sent> = Vec::new();
        for _ in 0..4_000 {
            if random.u32(..4) == 0 {
                waiting.push(gate.send(get()));
            }
            if random.u32(..5) == 0 && !waiting.is_empty() {
                waiting.swap_remove(random.usize(..waiting.len())).abort();
            }
            gate.pass(1).await;
        }
        waiting.iter().for_each(|request| request.abort());
        let left = gate.left();
        // Four in five leave before their turn. Of the forty that may go, most do.
        assert!(left.len() >= 28, "{number}: {}", left.len());
        for second in 0..4 {
            let count = left.iter().filter(|left| **left / 1_000 == second).count();
            assert!(count <= 11, "{number}: {count}");
        }
        // Nobody is left in a line: the next one goes within its share.
        gate.pass(2_000).await;
        gate.until(gate.send(get())).await.unwrap();
        assert_eq!(gate.left().last(), Some(&6_000), "{number}");
    }
}

/// A method of any kind.
trait Method: Reserve + Send + Sync {
    fn copy(&self) -> Box<dyn Method>;
}

impl<R: Reserve + Clone + Send + Sync + 'static> Method for R {
    fn copy(&self) -> Box<dyn Method> {
        Box::new(self.clone())
    }
}

struct Erased(Box<dyn Method>);

impl Clone for Erased {
    fn clone(&self) -> Self {
        Self((*self.0).copy())
    }
}

impl Reserve for Erased {
    fn reserve(
        &mut self,
        now: Duration,
        permits: u32,
        patience: Option<Duration>,
    ) -> Result<Duration, Duration> {
        (*self.0).reserve(now, permits, patience)
    }
}
