use std::error::Error;
use std::fmt;

/// Most classes that a throttle can have. Each request looks at every class a few times.
pub const MAX_CLASSES: usize = 8;

/// Why a throttle cannot be made as it was asked for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// No capacity was given, or one of zero.
    NoCapacity,
    /// More than one capacity was given.
    TwoCapacities,
    /// The queue has no room at all.
    NoQueue,
    /// The dearest request (the first number) costs more than the queue holds (the second).
    QueueTooSmall(u64, u64),
    /// No class, too many, or one without a name.
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
    /// A share of the processors that is not more than 0 and at most 1.
    Share,
    /// A list of peers could not be read: the reason.
    Peers(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCapacity => f.write_str("a throttle needs a capacity above zero"),
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
            Self::Peers(problem) => f.write_str(problem),
        }
    }
}

impl Error for ConfigError {}
