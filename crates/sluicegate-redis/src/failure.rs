//! The failures of a decision, by kind.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use sluicegate_core::store::StoreError;

/// Why Redis did not decide.
///
/// It is the [source](Error::source) of the store's [`StoreError`], except if that already
/// [says that the store was too slow](StoreError::is_too_slow).
///
/// ```
/// use std::error::Error;
/// use sluicegate_core::store::StoreError;
/// use sluicegate_redis::{Failure, FailureKind};
///
/// fn is_full(error: &StoreError) -> bool {
///     let failure = error.source().and_then(|source| source.downcast_ref::<Failure>());
///     failure.is_some_and(|failure| failure.kind() == FailureKind::OutOfMemory)
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Failure {
    kind: FailureKind,
    detail: Option<Arc<str>>,
    may_be_applied: bool,
    /// Whether no call was made, because the connection had failed before. Says nothing new about the server.
    not_sent: bool,
    /// The connection that broke, by its number among those of the node. It fails all calls that are on it.
    connection: Option<u64>,
}

/// The kinds of [`Failure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// There is no connection, or it broke before the answer came.
    Unreachable,
    /// No answer within the deadline.
    TooSlow,
    /// The breaker is open: no call was made.
    BreakerOpen,
    /// More calls are under way than [`background`](crate::RedisBuilder::background) allows. No call was made, because a
    /// late charge could not be given back.
    Full,
    /// The server is loading its data, or busy with a script.
    Busy,
    /// The server accepts no writes: it is a replica, or cannot persist or replicate them.
    ReadOnly,
    /// The server has reached its `maxmemory`, and evicts nothing.
    OutOfMemory,
    /// The row was not written by sluicegate: another program uses the same prefix.
    WrongType,
    /// The server rejects the user or the password, or the user may not run the script.
    Denied,
    /// No node serves the slot, the slot is moving between nodes, or the command was redirected too often.
    Cluster,
    /// The script failed.
    Script,
    /// The server sent something that is not an answer.
    Protocol,
}

impl FailureKind {
    /// Every kind, in the order of [`index`](Self::index).
    pub(crate) const ALL: [Self; 12] = [
        Self::Unreachable,
        Self::TooSlow,
        Self::BreakerOpen,
        Self::Full,
        Self::Busy,
        Self::ReadOnly,
        Self::OutOfMemory,
        Self::WrongType,
        Self::Denied,
        Self::Cluster,
        Self::Script,
        Self::Protocol,
    ];

    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// The name of the kind in metrics, such as `out_of_memory`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::TooSlow => "too_slow",
            Self::BreakerOpen => "breaker_open",
            Self::Full => "full",
            Self::Busy => "busy",
            Self::ReadOnly => "read_only",
            Self::OutOfMemory => "out_of_memory",
            Self::WrongType => "wrong_type",
            Self::Denied => "denied",
            Self::Cluster => "cluster",
            Self::Script => "script",
            Self::Protocol => "protocol",
        }
    }

    /// Whether the whole server is affected, and not just one call: only these failures open the breaker. A row of the
    /// wrong type affects one key, and a moving slot one slot.
    pub(crate) const fn affects_server(self) -> bool {
        !matches!(self, Self::WrongType | Self::Script | Self::Cluster | Self::Full)
    }

    /// Whether a new connection may help: the name may point to a promoted replica by now.
    pub(crate) const fn asks_for_another_connection(self) -> bool {
        matches!(self, Self::Unreachable | Self::ReadOnly | Self::Protocol | Self::Denied)
    }

    /// Whether other calls on the same connection can still get a valid answer.
    pub(crate) const fn leaves_others_to_be_answered(self) -> bool {
        !matches!(self, Self::Unreachable | Self::Protocol)
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Unreachable => "Redis cannot be reached",
            Self::TooSlow => "Redis did not answer in time",
            Self::BreakerOpen => "Redis failed repeatedly and its breaker is open",
            Self::Full => "too many calls to Redis are under way",
            Self::Busy => "Redis is loading its data or busy with a script",
            Self::ReadOnly => "Redis accepts no writes",
            Self::OutOfMemory => "Redis has reached its maxmemory",
            Self::WrongType => "the row in Redis was not written by sluicegate",
            Self::Denied => "Redis rejects the user or the user's rights",
            Self::Cluster => "the cluster cannot decide for this slot at the moment",
            Self::Script => "the script failed in Redis",
            Self::Protocol => "Redis sent something that is not an answer",
        }
    }
}

impl Failure {
    pub(crate) const fn new(kind: FailureKind) -> Self {
        Self { kind, detail: None, may_be_applied: false, not_sent: false, connection: None }
    }

    pub(crate) fn because(kind: FailureKind, detail: impl Into<Arc<str>>) -> Self {
        Self { detail: Some(detail.into()), ..Self::new(kind) }
    }

    /// Marks a failure after the call was handed to the connection: the server may have run it.
    pub(crate) fn after_sending(self) -> Self {
        let may_be_applied = matches!(
            self.kind,
            FailureKind::Unreachable | FailureKind::TooSlow | FailureKind::Protocol
        );
        Self { may_be_applied, ..self }
    }

    /// The same failure for calls that are not made because of it.
    pub(crate) fn not_sent(self) -> Self {
        Self { not_sent: true, may_be_applied: false, ..self }
    }

    /// Marks a failure that every call on this connection shares.
    pub(crate) fn of_connection(self, generation: u64) -> Self {
        Self { connection: Some(generation), ..self }
    }

    /// The connection whose calls all fail, if it did.
    pub(crate) const fn connection(&self) -> Option<u64> {
        self.connection
    }

    pub(crate) const fn is_not_sent(&self) -> bool {
        self.not_sent
    }

    /// Whether a request waited for the server.
    pub(crate) const fn was_waited_for(&self) -> bool {
        !self.not_sent && !matches!(self.kind, FailureKind::BreakerOpen | FailureKind::Full)
    }

    /// The kind of failure.
    pub const fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Whether the charge may have been made all the same, because the connection broke between call and answer.
    pub const fn may_be_applied(&self) -> bool {
        self.may_be_applied
    }
}

impl From<&RedisError> for Failure {
    fn from(error: &RedisError) -> Self {
        Self::because(kind_of(error), error.to_string())
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure.kind {
            FailureKind::TooSlow => Self::too_slow(),
            _ => Self::unavailable(failure),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.sentence())?;
        match &self.detail {
            Some(detail) => write!(f, ": {detail}"),
            None => Ok(()),
        }
    }
}

impl Error for Failure {}

fn kind_of(error: &RedisError) -> FailureKind {
    use ServerErrorKind as Server;
    match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType | ErrorKind::RESP3NotSupported => {
            FailureKind::Protocol
        }
        ErrorKind::AuthenticationFailed | ErrorKind::Server(Server::NoPerm) => FailureKind::Denied,
        ErrorKind::Server(Server::ReadOnly | Server::MasterDown) => FailureKind::ReadOnly,
        ErrorKind::Server(Server::BusyLoading) => FailureKind::Busy,
        ErrorKind::Server(
            Server::Moved
            | Server::Ask
            | Server::TryAgain
            | Server::ClusterDown
            | Server::CrossSlot,
        ) => FailureKind::Cluster,
        ErrorKind::Server(_) | ErrorKind::Extension => kind_of_code(error),
        _ => FailureKind::Unreachable,
    }
}

/// The kind by the error's code. Before Redis 7, the code of an error within a script is in the detail.
fn kind_of_code(error: &RedisError) -> FailureKind {
    let code = error.code().unwrap_or_default();
    let has = |word: &str| code == word || error.detail().is_some_and(|it| it.contains(word));
    match code {
        "NOAUTH" | "WRONGPASS" => FailureKind::Denied,
        "MISCONF" | "NOREPLICAS" => FailureKind::ReadOnly,
        "BUSY" => FailureKind::Busy,
        "BADROW" => FailureKind::WrongType,
        // Redis has no code of its own for a command that the user of a script may not run.
        _ if has("The user executing the script can't") || has("ACL failure in script") => {
            FailureKind::Denied
        }
        _ if has("OOM") => FailureKind::OutOfMemory,
        _ if has("WRONGTYPE") => FailureKind::WrongType,
        _ if has("READONLY") => FailureKind::ReadOnly,
        _ => FailureKind::Script,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> FailureKind {
        let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes());
        let error = value.and_then(redis::Value::extract_error).expect_err("an error");
        Failure::from(&error).kind()
    }

    #[test]
    fn an_error_is_known_by_its_code_before_and_after_redis_7() {
        use FailureKind::*;
        let table = [
            ("OOM command not allowed when used memory > 'maxmemory'.", OutOfMemory),
            ("ERR Error running script (call to f_1): @user_script: 1: -OOM command", OutOfMemory),
            ("WRONGTYPE Operation against a key script: 1, on @user_script:1.", WrongType),
            ("ERR Error running script: @user_script:3: WRONGTYPE Operation", WrongType),
            ("BADROW {alice}01 holds 3 bytes, not 16", WrongType),
            ("READONLY You can't write against a read only replica.", ReadOnly),
            ("MISCONF Redis is configured to save RDB snapshots", ReadOnly),
            ("MASTERDOWN Link with MASTER is down", ReadOnly),
            ("LOADING Redis is loading the dataset in memory", Busy),
            ("BUSY Redis is busy running a script", Busy),
            ("CLUSTERDOWN Hash slot not served", Cluster),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Cluster),
            ("NOAUTH Authentication required.", Denied),
            ("WRONGPASS invalid username-password pair", Denied),
            ("NOPERM this user has no permissions", Denied),
            (
                "ERR The user executing the script can't run this command or subcommand script: 1",
                Denied,
            ),
            (
                "ERR ACL failure in script: User limiter has no permissions to run the 'set' command",
                Denied,
            ),
            ("ERR user_script:7: attempt to index a nil value", Script),
        ];
        for (line, expected) in table {
            assert_eq!(kind(line), expected, "{line}");
        }
    }

    #[test]
    fn kinds_are_numbered_as_they_are_listed() {
        for (i, kind) in FailureKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), i, "{}", kind.name());
        }
    }

    #[test]
    fn a_failure_is_never_about_the_client() {
        for kind in FailureKind::ALL {
            let error = StoreError::from(Failure::new(kind));
            assert_eq!(error.is_too_slow(), kind == FailureKind::TooSlow);
            assert!(!error.is_full() && !error.is_unsupported());
        }
    }
}
