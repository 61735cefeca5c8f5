use std::error::Error;
use std::fmt;
use std::time::Duration;

/// Most classes that a throttle can have. Each request looks at every class a few times.
pub const MAX_CLASSES: usize = 8;

/// Most partitions that a throttle can have.
pub const MAX_PARTITIONS: usize = 8;

/// Why a throttle cannot be made with these settings.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// No capacity was given, or one of zero.
    NoCapacity,
    /// The period of a rate that is shorter than a microsecond or longer than a year.
    Period(Duration),
    /// More than one capacity was given.
    TwoCapacities,
    /// The queue has no room at all.
    NoQueue,
    /// The most expensive request (the first number) costs more than the queue holds (the second).
    QueueTooSmall(u64, u64),
    /// There are no classes or too many, or a class has no name.
    Classes(usize),
    /// Two classes have this name.
    ClassTwice(String),
    /// The number of weights is not the number of classes.
    Weights(usize, usize),
    /// A weight is zero.
    ZeroWeight,
    /// A number of flow queues outside of 1 to 1,024.
    FlowQueues(usize),
    /// CoDel's target is zero or longer than its interval.
    Codel,
    /// A share of the processors that is outside of the range above 0 and up to 1.
    Share,
    /// Too many partitions: how many.
    Partitions(usize),
    /// The share of a partition that is outside of the range above 0 and up to 1.
    PartitionShare(f64),
    /// The shares of all partitions together, which are more than 1.
    PartitionSum(f64),
    /// Two partitions have this name.
    PartitionTwice(String),
    /// No partition has this name.
    UnknownPartition(String),
    /// Partitions were given together with a capacity that is a rate.
    PartitionedRate,
    /// What cannot change while the throttle runs.
    Fixed(&'static str),
    /// A list of peers could not be read: the reason.
    Peers(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCapacity => f.write_str("a throttle needs a capacity above zero"),
            Self::Period(period) => write!(
                f,
                "the period of a rate is at least a microsecond and at most a year, not {period:?}"
            ),
            Self::TwoCapacities => f.write_str(
                "a throttle has one capacity: two control loops on one service work against each other",
            ),
            Self::NoQueue => f.write_str("the queue has to hold a cost of at least 1"),
            Self::QueueTooSmall(dearest, queue) => write!(
                f,
                "the queue holds a cost of {queue}, but the dearest request costs {dearest} and would never fit"
            ),
            Self::Classes(count) => write!(
                f,
                "a throttle has 1 to {MAX_CLASSES} classes, each with a name; {count} were given"
            ),
            Self::ClassTwice(name) => write!(f, "the class `{name}` is named twice"),
            Self::Weights(weights, classes) => {
                write!(f, "{classes} classes need {classes} weights; {weights} were given")
            }
            Self::ZeroWeight => {
                f.write_str("a class with a weight of zero would never be served; use at least 1")
            }
            Self::FlowQueues(queues) => {
                write!(f, "a class has 1 to 1024 queues for its flows; {queues} were asked for")
            }
            Self::Codel => {
                f.write_str("the target of CoDel has to be above zero and at most its interval")
            }
            Self::Share => f.write_str("a share of the processors is above 0 and at most 1"),
            Self::Partitions(count) => {
                write!(f, "a throttle has at most {MAX_PARTITIONS} partitions; {count} were given")
            }
            Self::PartitionShare(share) => {
                write!(f, "the share of a partition is above 0 and at most 1, not {share:?}")
            }
            Self::PartitionSum(sum) => {
                write!(f, "the shares of all partitions are at most 1 together, not {sum:?}")
            }
            Self::PartitionTwice(name) => write!(f, "the partition `{name}` is named twice"),
            Self::UnknownPartition(name) => {
                write!(f, "the throttle has no partition `{name}`")
            }
            Self::PartitionedRate => f.write_str(
                "partitions divide work in flight; a rate has none: use `in_flight` or `adaptive`",
            ),
            Self::Fixed(part) => {
                write!(f, "the {part} cannot change while the throttle runs: start it anew")
            }
            Self::Peers(problem) => f.write_str(problem),
        }
    }
}

impl Error for ConfigError {}
