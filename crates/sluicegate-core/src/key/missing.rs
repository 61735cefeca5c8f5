use std::borrow::Cow;
use std::fmt;

use super::short::ShortText;

/// Why the charge of a request could not be worked out.
///
/// A missing key is never silently unlimited. If the client left it out, the answer is `400 Bad Request`. If the
/// server is not set up to provide it, the answer is `500 Internal Server Error`, and a log line says what to add.
/// Only a key wrapped in [`Optional`](super::Optional) exempts the request if it is absent.
///
/// ```
/// use sluicegate::key::Missing;
///
/// let missing = Missing::client("the `x-api-key` header");
/// assert_eq!(missing.to_string(), "the request lacks the `x-api-key` header");
/// assert!(missing.is_client());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    kind: Kind,
    what: What,
    hint: Cow<'static, str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Client,
    Ambiguous,
    Server,
    Exempt,
}

/// The noun and the name are put together when they are displayed. [`First`](super::First) goes on to its next
/// alternative when a key is missing, and must not pay for a `String`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Text(Cow<'static, str>),
    Named { article: &'static str, name: ShortText, noun: &'static str },
}

impl Missing {
    /// The client left out (or garbled) something that it has to send. Answered with 400.
    pub fn client(what: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: Kind::Client, what: What::Text(what.into()), hint: Cow::Borrowed("") }
    }

    /// The client sent something that can be read in more than one way, such as a header twice.
    ///
    /// It is answered with 400, as if it were missing. But neither [`Optional`](super::Optional) nor
    /// [`First`](super::First) treat it as absent: a handler may read one of the values, and that one would not be
    /// charged.
    pub fn ambiguous(what: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: Kind::Ambiguous, what: What::Text(what.into()), hint: Cow::Borrowed("") }
    }

    /// The server does not provide something that the rule needs. Answered with 500. `hint` is the line to add.
    pub fn server(what: impl Into<Cow<'static, str>>, hint: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: Kind::Server, what: What::Text(what.into()), hint: hint.into() }
    }

    /// Not an error: the rule does not apply to this request, which is not charged.
    pub fn exempt() -> Self {
        let what = What::Text(Cow::Borrowed("nothing"));
        Self { kind: Kind::Exempt, what, hint: Cow::Borrowed("") }
    }

    /// Like [`client`](Self::client), for "the `name` noun".
    pub(super) fn client_named(name: &str, noun: &'static str) -> Self {
        let what = What::Named { article: "the", name: ShortText::new(name), noun };
        Self { kind: Kind::Client, what, hint: Cow::Borrowed("") }
    }

    /// Like [`ambiguous`](Self::ambiguous), for "exactly one `name` noun".
    pub(super) fn ambiguous_named(name: &str, noun: &'static str) -> Self {
        let what = What::Named { article: "exactly one", name: ShortText::new(name), noun };
        Self { kind: Kind::Ambiguous, what, hint: Cow::Borrowed("") }
    }

    /// Like [`server`](Self::server), for "the `name` noun".
    pub(super) fn server_named(name: &str, noun: &'static str, hint: &'static str) -> Self {
        let what = What::Named { article: "the", name: ShortText::new(name), noun };
        Self { kind: Kind::Server, what, hint: Cow::Borrowed(hint) }
    }

    /// Whether the client has to change its request (`400`).
    pub fn is_client(&self) -> bool {
        matches!(self.kind, Kind::Client | Kind::Ambiguous)
    }

    /// Whether the client sent a value that can be read in more than one way. [`is_client`](Self::is_client) is then
    /// true as well.
    pub fn is_ambiguous(&self) -> bool {
        self.kind == Kind::Ambiguous
    }

    /// Whether the operator has to change the server's set-up (`500`).
    pub fn is_server(&self) -> bool {
        self.kind == Kind::Server
    }

    /// Whether the rule does not apply to the request.
    pub fn is_exempt(&self) -> bool {
        self.kind == Kind::Exempt
    }

    /// What is missing, as an object of "lacks".
    pub fn what(&self) -> Cow<'_, str> {
        match &self.what {
            What::Text(text) => Cow::Borrowed(text),
            named @ What::Named { .. } => Cow::Owned(named.to_string()),
        }
    }

    /// How the operator can fix it. Empty if the client has to.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Client => write!(f, "the request lacks {}", self.what),
            Kind::Ambiguous => write!(f, "the request has to have {}", self.what),
            Kind::Server => write!(f, "the server lacks {}: {}", self.what, self.hint),
            Kind::Exempt => f.write_str("the rule does not apply"),
        }
    }
}

impl std::error::Error for Missing {}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Named { article, name, noun } => {
                write!(f, "{article} `{}` {noun}", name.as_str())
            }
        }
    }
}
