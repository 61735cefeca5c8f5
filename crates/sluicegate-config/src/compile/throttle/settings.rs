use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_throttle::adaptive::Bandwidth;
use sluicegate_throttle::layer::{Reported, ThrottleBuilder};
use sluicegate_throttle::{Classes, ConfigError, Throttle};

use crate::compile::context::Context;
use crate::document::{self, Adaptive, QueueBound, QueueCost, ReportedCost};
use crate::source::DocumentPath;

/// Settings that work. They are kept as steps, because a builder makes one throttle, and a reload needs another.
#[derive(Clone)]
pub(super) struct Settings {
    classes: Classes,
    steps: Vec<Step>,
}

/// What some settings do to a builder.
type Step = Arc<dyn Fn(ThrottleBuilder) -> ThrottleBuilder + Send + Sync>;

fn step(set: impl Fn(ThrottleBuilder) -> ThrottleBuilder + Send + Sync + 'static) -> Step {
    Arc::new(set)
}

impl Settings {
    pub(super) fn new(
        spec: &document::Throttle,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        let reader = Reader { spec, path, context };
        // Everything is read before the first error ends it, so that all errors are reported.
        let name = reader.text("name", spec.name.as_deref());
        let (capacity, queue, classes) = (reader.capacity(), reader.queue(), reader.classes());
        let late = reader.time("freshest_when_late", spec.freshest_when_late.as_deref());
        let (codel, partitions) = (reader.codel(), reader.partitions());

        let (name, capacity, queue, classes) = (name?, capacity?, queue?, classes?);
        let (late, codel, partitions) = (late?, codel?, partitions?);
        let dearest = spec.dearest.unwrap_or_default();
        let (shape, weights) = (classes.clone(), spec.weights.clone());
        let parts = [
            step(move |builder| capacity(queue(builder.dearest(dearest)))),
            step(move |builder| {
                let builder = builder.classes(shape.clone());
                weights
                    .iter()
                    .fold(builder, |builder, weights| builder.weights(weights.iter().copied()))
            }),
            step(move |builder| {
                codel
                    .into_iter()
                    .fold(builder, |builder, (target, interval)| builder.codel(target, interval))
            }),
            step(move |builder| {
                let partitions = partitions.iter();
                partitions.fold(builder, |builder, (name, share)| builder.partition(name, *share))
            }),
        ];
        let (first_cost, clock) = (spec.first_cost, context.environment.clock.clone());
        let reported = match spec.reported_cost {
            Some(ReportedCost::OnTop) => Reported::OnTop,
            Some(ReportedCost::Instead) | None => Reported::Instead,
        };
        let rest = step(move |builder| {
            let builder = name.iter().fold(builder, ThrottleBuilder::named);
            let builder = first_cost.into_iter().fold(builder, ThrottleBuilder::first_cost);
            let builder = late.into_iter().fold(builder, ThrottleBuilder::freshest_when_late);
            let builder = clock.iter().cloned().fold(builder, ThrottleBuilder::clock);
            builder.reported_cost(reported)
        });
        // Each part is checked by itself, so that all errors are reported, and then the whole.
        let plain = || Throttle::builder().in_flight(1).queue_cost(1);
        let checked = parts.iter().enumerate().map(|(at, part)| {
            let begun = if at == 0 { Throttle::builder() } else { plain() };
            reader.works(part(begun))
        });
        if checked.filter(|works| !works).count() > 0 {
            return None;
        }
        let settings = Self { classes, steps: parts.into_iter().chain([rest]).collect() };
        reader.works(settings.builder()).then_some(settings)
    }

    pub(super) const fn classes(&self) -> &Classes {
        &self.classes
    }

    pub(super) fn builder(&self) -> ThrottleBuilder {
        self.steps.iter().fold(Throttle::builder(), |builder, step| step(builder))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.builder().fmt(f)
    }
}

/// Reads settings one by one.
struct Reader<'a> {
    spec: &'a document::Throttle,
    path: &'a DocumentPath<'a>,
    context: &'a Context<'a>,
}

/// A value that is left out is `Some(None)`; `None` is an error, which is reported.
impl Reader<'_> {
    fn report(&self, setting: &str, message: impl Into<String>) {
        self.context.report(&self.path.name(setting), message);
    }

    fn works(&self, builder: ThrottleBuilder) -> bool {
        let built = builder.build();
        built.map_err(|error| self.report(setting_of(&error), error.to_string())).is_ok()
    }

    fn text(&self, setting: &str, spec: Option<&str>) -> Option<Option<String>> {
        if spec == Some("") {
            return self
                .context
                .refuse(&self.path.name(setting), "the name is empty, expected one such as `api`");
        }
        Some(spec.map(str::to_owned))
    }

    fn time(&self, setting: &str, spec: Option<&str>) -> Option<Option<Duration>> {
        match spec {
            Some(text) => self.context.time(text, &self.path.name(setting)).map(Some),
            None => Some(None),
        }
    }

    fn capacity(&self) -> Option<Step> {
        let path = self.path.name("capacity");
        let spec = &self.spec.capacity;
        let given = [
            spec.requests_per_second.map(|rate| step(move |to| to.requests_per_second(rate))),
            spec.cost_per_second.map(|rate| step(move |to| to.cost_per_second(rate))),
            spec.in_flight.map(|most| step(move |to| to.in_flight(size(most)))),
        ];
        let count = given.iter().flatten().count()
            + usize::from(spec.cpu.is_some())
            + usize::from(spec.adaptive.is_some());
        if count != 1 {
            return self.context.refuse(
                &path,
                "a throttle has one capacity, expected exactly one of `requests_per_second`, `cost_per_second`, \
                 `cpu`, `in_flight` and `adaptive`",
            );
        }
        if let Some(share) = &spec.cpu {
            let share = self.context.share(share, &path.name("cpu"))?;
            return Some(step(move |to| to.cpu(share)));
        }
        match &spec.adaptive {
            Some(adaptive) => self.adaptive(adaptive, &path.name("adaptive")),
            None => given.into_iter().flatten().next(),
        }
    }

    fn adaptive(&self, spec: &Adaptive, path: &DocumentPath<'_>) -> Option<Step> {
        let Adaptive { start, min, max } = *spec;
        let max = max.unwrap_or(1_000);
        let min = min.unwrap_or_else(|| max.min(2));
        let start = start.unwrap_or_else(|| 20.clamp(min.min(max), max));
        if min == 0 || min > start || start > max {
            return self.context.refuse(
                path,
                format!(
                    "the limit starts at {start} and stays from {min} to {max}: expected 1 or more, in ascending \
                     order `min`, `start`, `max`"
                ),
            );
        }
        let [start, min, max] = [start, min, max].map(size);
        Some(step(move |to| to.adaptive(Bandwidth::new(start, min, max))))
    }

    fn queue(&self) -> Option<Step> {
        Some(match &self.spec.queue {
            QueueBound::Time(text) => {
                let time = self.context.time(text, &self.path.name("queue"))?;
                step(move |to| to.queue(time))
            }
            QueueBound::Cost(QueueCost { cost }) => {
                let cost = *cost;
                step(move |to| to.queue_cost(cost))
            }
        })
    }

    fn classes(&self) -> Option<Classes> {
        let Some(names) = &self.spec.classes else { return Some(Classes::four()) };
        let classes = Classes::named(names.iter().map(String::as_str));
        self.context.check(&self.path.name("classes"), classes)
    }

    fn codel(&self) -> Option<Option<(Duration, Duration)>> {
        let Some(spec) = &self.spec.codel else { return Some(None) };
        let path = self.path.name("codel");
        let target = self.context.time(&spec.target, &path.name("target"));
        let interval = self.context.time(&spec.interval, &path.name("interval"));
        Some(Some((target?, interval?)))
    }

    fn partitions(&self) -> Option<Vec<(String, f64)>> {
        let list = self.path.name("partitions");
        let partition = |(i, spec): (usize, &document::Partition)| {
            let path = list.index(i);
            let name = self.context.name("partition", &spec.name, &path.name("name"));
            let share = self.context.share(&spec.share, &path.name("share"));
            Some((name?.to_string(), share?))
        };
        let partitions = self.spec.partitions.iter().enumerate().map(partition);
        partitions.collect::<Vec<_>>().into_iter().collect()
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The setting of `[throttle]` that an error is about.
pub(crate) fn setting_of(error: &ConfigError) -> &'static str {
    match error {
        ConfigError::NoQueue | ConfigError::QueueTooSmall(..) => "queue",
        ConfigError::Classes(_)
        | ConfigError::ClassTwice(_)
        | ConfigError::Fixed("list of classes") => "classes",
        ConfigError::Weights(..) | ConfigError::ZeroWeight => "weights",
        ConfigError::Codel => "codel",
        ConfigError::Partitions(_)
        | ConfigError::PartitionShare(_)
        | ConfigError::PartitionSum(_)
        | ConfigError::PartitionTwice(_)
        | ConfigError::PartitionedRate
        | ConfigError::Fixed("list of partitions") => "partitions",
        ConfigError::Fixed("meaning of reported costs") => "reported_cost",
        _ => "capacity",
    }
}
