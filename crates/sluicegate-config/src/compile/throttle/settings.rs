use std::time::Duration;

use sluicegate_core::clock::Clock;
use sluicegate_throttle::adaptive::Bandwidth;
use sluicegate_throttle::layer::{Reported, ThrottleBuilder};
use sluicegate_throttle::{Classes, Throttle};

use super::setting_of;
use crate::compile::context::Context;
use crate::document::{self, Adaptive, Amount, QueueBound, QueueCost, ReportedCost};
use crate::source::DocumentPath;

/// Settings that work.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    name: Option<String>,
    capacity: Capacity,
    queue: Queue,
    dearest: u64,
    classes: Classes,
    weights: Option<Vec<u32>>,
    first_cost: Option<u64>,
    reported: Reported,
    late: Option<Duration>,
    codel: Option<(Duration, Duration)>,
    partitions: Vec<(String, f64)>,
    clock: Option<Clock>,
}

#[derive(Debug, Clone)]
enum Capacity {
    Requests(u64),
    Cost(u64),
    Cpu(f64),
    InFlight(usize),
    Adaptive { start: usize, min: usize, max: usize },
}

#[derive(Debug, Clone, Copy)]
enum Queue {
    Time(Duration),
    Cost(u64),
}

impl Settings {
    pub(super) fn new(
        said: &document::Throttle,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        let reader = Reader { said, path, context };
        // Everything is read before the first error ends it, so that all errors are reported.
        let name = reader.text("name", said.name.as_deref());
        let (capacity, queue, classes) = (reader.capacity(), reader.queue(), reader.classes());
        let late = reader.time("freshest_when_late", said.freshest_when_late.as_deref());
        let (codel, partitions) = (reader.codel(), reader.partitions());
        let settings = Self {
            name: name?,
            capacity: capacity?,
            queue: queue?,
            dearest: said.dearest.unwrap_or_default(),
            classes: classes?,
            weights: said.weights.clone(),
            first_cost: said.first_cost,
            reported: match said.reported_cost {
                Some(ReportedCost::OnTop) => Reported::OnTop,
                Some(ReportedCost::Instead) | None => Reported::Instead,
            },
            late: late?,
            codel: codel?,
            partitions: partitions?,
            clock: context.environment.own_clock().cloned(),
        };
        settings.check(&reader).then_some(settings)
    }

    pub(super) const fn classes(&self) -> &Classes {
        &self.classes
    }

    pub(super) fn builder(&self) -> ThrottleBuilder {
        let mut builder = self.with_shape(self.with_capacity());
        if let Some(name) = &self.name {
            builder = builder.named(name);
        }
        if let Some(cost) = self.first_cost {
            builder = builder.first_cost(cost);
        }
        if let Some(late) = self.late {
            builder = builder.freshest_when_late(late);
        }
        if let Some(clock) = &self.clock {
            builder = builder.clock(clock.clone());
        }
        self.with_partitions(self.with_codel(builder)).reported_cost(self.reported)
    }

    fn with_capacity(&self) -> ThrottleBuilder {
        let builder = Throttle::builder().dearest(self.dearest);
        let builder = match self.queue {
            Queue::Time(time) => builder.queue(time),
            Queue::Cost(cost) => builder.queue_cost(cost),
        };
        match self.capacity {
            Capacity::Requests(requests) => builder.requests_per_second(requests),
            Capacity::Cost(cost) => builder.cost_per_second(cost),
            Capacity::Cpu(share) => builder.cpu(share),
            Capacity::InFlight(requests) => builder.in_flight(requests),
            Capacity::Adaptive { start, min, max } => {
                builder.adaptive(Bandwidth::new(start, min, max))
            }
        }
    }

    fn with_shape(&self, builder: ThrottleBuilder) -> ThrottleBuilder {
        let builder = builder.classes(self.classes.clone());
        match &self.weights {
            Some(weights) => builder.weights(weights.iter().copied()),
            None => builder,
        }
    }

    fn with_codel(&self, builder: ThrottleBuilder) -> ThrottleBuilder {
        match self.codel {
            Some((target, interval)) => builder.codel(target, interval),
            None => builder,
        }
    }

    fn with_partitions(&self, builder: ThrottleBuilder) -> ThrottleBuilder {
        let partitions = self.partitions.iter();
        partitions.fold(builder, |builder, (name, share)| builder.partition(name, *share))
    }

    /// Checks each part by itself, so that all errors are reported, and then the whole.
    fn check(&self, reader: &Reader<'_>) -> bool {
        let plain = || Throttle::builder().in_flight(1).queue_cost(1);
        let parts = [
            self.with_capacity(),
            self.with_shape(plain()),
            self.with_codel(plain()),
            self.with_partitions(plain()),
        ];
        let works = |builder: ThrottleBuilder| match builder.build() {
            Ok(_) => true,
            Err(error) => {
                reader.report(setting_of(&error), error.to_string());
                false
            }
        };
        let sound = parts.into_iter().map(works).filter(|works| !works).count() == 0;
        sound && works(self.builder())
    }
}

/// Reads settings one by one.
struct Reader<'a> {
    said: &'a document::Throttle,
    path: &'a DocumentPath<'a>,
    context: &'a Context<'a>,
}

/// A value that is left out is `Some(None)`; `None` is an error, which is reported.
impl Reader<'_> {
    fn report(&self, setting: &str, message: impl Into<String>) {
        self.context.report(&self.path.name(setting), message);
    }

    fn text(&self, setting: &str, said: Option<&str>) -> Option<Option<String>> {
        if said == Some("") {
            self.report(setting, "the name is empty, expected one such as `api`");
            return None;
        }
        Some(said.map(str::to_owned))
    }

    fn time(&self, setting: &str, said: Option<&str>) -> Option<Option<Duration>> {
        match said {
            Some(text) => self.context.time(text, &self.path.name(setting)).map(Some),
            None => Some(None),
        }
    }

    fn capacity(&self) -> Option<Capacity> {
        let path = self.path.name("capacity");
        let said = &self.said.capacity;
        let given = [
            said.requests_per_second.map(Capacity::Requests),
            said.cost_per_second.map(Capacity::Cost),
            said.in_flight.map(|most| Capacity::InFlight(size(most))),
        ];
        let count = given.iter().flatten().count()
            + usize::from(said.cpu.is_some())
            + usize::from(said.adaptive.is_some());
        if count != 1 {
            self.context.report(
                &path,
                "a throttle has one capacity, expected exactly one of `requests_per_second`, `cost_per_second`, \
                 `cpu`, `in_flight` and `adaptive`",
            );
            return None;
        }
        if let Some(share) = &said.cpu {
            return self.share(share, &path.name("cpu")).map(Capacity::Cpu);
        }
        match &said.adaptive {
            Some(adaptive) => self.adaptive(adaptive, &path.name("adaptive")),
            None => given.into_iter().flatten().next(),
        }
    }

    fn adaptive(&self, said: &Adaptive, path: &DocumentPath<'_>) -> Option<Capacity> {
        let Adaptive { start, min, max } = *said;
        let max = max.unwrap_or(1_000);
        let min = min.unwrap_or_else(|| max.min(2));
        let start = start.unwrap_or_else(|| 20.clamp(min.min(max), max));
        if min == 0 || min > start || start > max {
            self.context.report(
                path,
                format!(
                    "the limit starts at {start} and stays from {min} to {max}: expected 1 or more, in ascending \
                     order `min`, `start`, `max`"
                ),
            );
            return None;
        }
        Some(Capacity::Adaptive { start: size(start), min: size(min), max: size(max) })
    }

    fn queue(&self) -> Option<Queue> {
        match &self.said.queue {
            QueueBound::Time(text) => {
                self.context.time(text, &self.path.name("queue")).map(Queue::Time)
            }
            QueueBound::Cost(QueueCost { cost }) => Some(Queue::Cost(*cost)),
        }
    }

    fn classes(&self) -> Option<Classes> {
        let Some(names) = &self.said.classes else { return Some(Classes::four()) };
        let classes = Classes::named(names.iter().map(String::as_str));
        self.context.check(&self.path.name("classes"), classes)
    }

    fn codel(&self) -> Option<Option<(Duration, Duration)>> {
        let Some(said) = &self.said.codel else { return Some(None) };
        let path = self.path.name("codel");
        let target = self.context.time(&said.target, &path.name("target"));
        let interval = self.context.time(&said.interval, &path.name("interval"));
        Some(Some((target?, interval?)))
    }

    fn partitions(&self) -> Option<Vec<(String, f64)>> {
        let list = self.path.name("partitions");
        let partition = |(i, said): (usize, &document::Partition)| {
            let path = list.index(i);
            let name = self.context.name("partition", &said.name, &path.name("name"));
            let share = self.share(&said.share, &path.name("share"));
            Some((name?.to_string(), share?))
        };
        let partitions = self.said.partitions.iter().enumerate().map(partition);
        partitions.collect::<Vec<_>>().into_iter().collect()
    }

    fn share(&self, said: &Amount, path: &DocumentPath<'_>) -> Option<f64> {
        match said {
            // Percentages up to 100 are exact as `f64`.
            Amount::Percent(text) => {
                self.context.percent(text, path).map(|percent| percent as f64 / 100.0)
            }
            Amount::Count(count) => {
                let message = format!("`{count}` is not a percentage, expected one such as `80%`");
                self.context.report(path, message);
                None
            }
        }
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
