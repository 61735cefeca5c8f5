use std::fmt;

use sluicegate_core::condition::{ChosenBy, Condition as CoreCondition, InFlight};
use sluicegate_core::key::{Missing, View};

use super::Context;
use crate::absent::Cpu;
use crate::document::{self, Amount};
use crate::environment::RoomFn;
use crate::source::DocumentPath;

/// Whether there is room for more than the usual limits.
#[derive(Clone)]
pub(super) enum Room {
    Named(RoomFn),
    InFlight(InFlight),
    Cpu(Cpu),
}

impl<V: View> CoreCondition<V> for Room {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        match self {
            Self::Named(room) => Ok(room()),
            Self::InFlight(load) => load.holds(view),
            Self::Cpu(load) => load.holds(view),
        }
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(_) => f.write_str("Named"),
            Self::InFlight(load) => load.fmt(f),
            Self::Cpu(load) => load.fmt(f),
        }
    }
}

impl Room {
    pub(super) fn new(
        said: &document::Room,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        match (&said.room, said.in_flight, &said.cpu) {
            (Some(name), None, None) => {
                let room = context.environment.named_room(name);
                context.check(&path.name("room"), room).map(Self::Named)
            }
            (None, Some(0), None) => {
                let path = path.name("in_flight");
                context.wrong(&path, "fewer than 0 requests are never served, expected at least 1");
                None
            }
            (None, Some(bound), None) => {
                let load = context.environment.load_below(bound);
                context.check(&path.name("in_flight"), load).map(Self::InFlight)
            }
            (None, None, Some(share)) => Self::cpu(share, &path.name("cpu"), context),
            _ => {
                context.wrong(
                    path,
                    "a load has one measure, expected one of `room`, `in_flight` and `cpu`",
                );
                None
            }
        }
    }

    fn cpu(share: &Amount, path: &DocumentPath<'_>, context: &Context<'_>) -> Option<Self> {
        let percent = match share {
            Amount::Percent(text) => context.percent(text, path)?,
            Amount::Count(count) => {
                context.wrong(path, format!("`{count}` is no percentage, expected such as `80%`"));
                return None;
            }
        };
        // No percentage up to 100 loses anything.
        context.check(path, Cpu::below(percent as f64 / 100.0)).map(Self::Cpu)
    }
}
