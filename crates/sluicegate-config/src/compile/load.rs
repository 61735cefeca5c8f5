use std::fmt;

use sluicegate_core::condition::{ChosenBy, Condition as CoreCondition, InFlight};
use sluicegate_core::key::{Missing, View};

use super::Context;
use crate::absent::Cpu;
use crate::document::{self, Amount};
use crate::environment::CapacityFn;
use crate::source::DocumentPath;

/// A condition on the load of the service.
#[derive(Clone)]
pub(super) enum Load {
    Capacity(CapacityFn),
    InFlight(InFlight),
    Cpu(Cpu),
}

impl<V: View> CoreCondition<V> for Load {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        match self {
            Self::Capacity(has_capacity) => Ok(has_capacity()),
            Self::InFlight(load) => load.holds(view),
            Self::Cpu(load) => load.holds(view),
        }
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity(_) => f.write_str("Capacity"),
            Self::InFlight(load) => load.fmt(f),
            Self::Cpu(load) => load.fmt(f),
        }
    }
}

impl Load {
    pub(super) fn new(
        said: &document::Load,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        match (&said.has_capacity, said.in_flight, &said.cpu) {
            (Some(name), None, None) => {
                let capacity = context.environment.named_capacity(name);
                context.check(&path.name("has_capacity"), capacity).map(Self::Capacity)
            }
            (None, Some(0), None) => {
                let path = path.name("in_flight");
                context.report(&path, "there are never fewer than 0 requests, expected at least 1");
                None
            }
            (None, Some(bound), None) => {
                let load = context.environment.load_below(bound);
                context.check(&path.name("in_flight"), load).map(Self::InFlight)
            }
            (None, None, Some(share)) => Self::cpu(share, &path.name("cpu"), context),
            _ => {
                context.report(
                    path,
                    "`while` takes exactly one of `has_capacity`, `in_flight` and `cpu`",
                );
                None
            }
        }
    }

    fn cpu(share: &Amount, path: &DocumentPath<'_>, context: &Context<'_>) -> Option<Self> {
        let percent = match share {
            Amount::Percent(text) => context.percent(text, path)?,
            Amount::Count(count) => {
                context.report(
                    path,
                    format!("`{count}` is not a percentage, expected one such as `80%`"),
                );
                return None;
            }
        };
        // Percentages up to 100 are exact as `f64`.
        context.check(path, Cpu::below(percent as f64 / 100.0)).map(Self::Cpu)
    }
}
