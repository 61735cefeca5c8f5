mod attacks;
mod division;
mod errors;
mod learning;
mod leases;
mod tree;

use std::time::Duration;

use super::{Answer, Ask, Grant, Pool};
use crate::amount::Amount;
use crate::fair::Demand;
use crate::message::Release;
use crate::template::{Template, Templates};

const SECOND: u64 = 1_000;

fn pool(template: Template) -> Pool {
    let mut pool = Pool::new(Templates::new([template]).unwrap());
    pool.lead(0, 1, Some(Vec::new()));
    pool
}

/// A client for tests, which adopts what it is granted.
#[derive(Debug, Clone)]
struct Client {
    name: &'static str,
    sequence: u64,
    fence: u64,
    has: Amount,
    demands: Vec<Demand>,
    outstanding: Amount,
    learning: bool,
}

fn client(name: &'static str, wants: u64) -> Client {
    Client {
        name,
        sequence: 0,
        fence: 1,
        has: Amount::ZERO,
        demands: vec![Demand::of(Amount::units(wants))],
        outstanding: Amount::ZERO,
        learning: false,
    }
}

impl Client {
    /// Asks, and loses the answer.
    fn send(&mut self, pool: &mut Pool, now: u64) -> Result<Answer, super::AskError> {
        self.sequence += 1;
        let ask = Ask {
            has: self.has,
            outstanding: self.outstanding,
            learning: self.learning,
            ..Ask::new(self.name, "db", self.sequence, self.fence, &self.demands)
        };
        pool.ask(now, &ask)
    }

    #[track_caller]
    fn grant(&mut self, pool: &mut Pool, now: u64) -> Grant {
        match self.send(pool, now) {
            Ok(Answer::Grant(grant)) => {
                self.has = grant.capacity;
                grant
            }
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn gets(&mut self, pool: &mut Pool, now: u64) -> f64 {
        self.grant(pool, now).capacity.as_f64()
    }
}

fn release(client: &str, sequence: u64, fence: u64) -> Release {
    Release {
        client: client.into(),
        instance: 0,
        sequence,
        fence,
        resources: vec!["db".into(), "nothing".into()],
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
