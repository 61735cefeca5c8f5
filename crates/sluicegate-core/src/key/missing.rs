use std::borrow::Cow;
use std::fmt;

use super::short::ShortText;

/// Why a request could not be told what it owes.
///
/// A key that is missing is never silently unlimited. What the client left out is answered with
/// `400 Bad Request`; what the server's own set-up lacks is answered with
/// `500 Internal Server Error` and a log line that says what to add. Only a key wrapped in
/// [`Optional`](super::Optional) owes nothing when it is absent.
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

/// A noun and a name are put together when somebody reads them: a key that is missing is no news to
/// [`First`](super::First), which goes on to its next alternative and must not pay for a `String`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Text(Cow<'static, str>),
    Named { article: &'static str, name: ShortText, noun: &'static str },
}

impl Missing {
    /// The client left out (or garbled) something that it has to send.
    pub fn client(what: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: Kind::Client, what: What::Text(what.into()), hint: Cow::Borrowed("") }
    }

    /// The client sent something that can be read in more than one way, such as a header twice.
    ///
    /// It has to mend its request as if it had sent nothing, but neither
    /// [`Optional`](super::Optional) nor [`First`](super::First) takes it for absent: whoever
    /// handles the request may well read one of the values, and that one would be charged to nobody.
    pub fn ambiguous(what: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: Kind::Ambiguous, what: What::Text(what.into()), hint: Cow::Borrowed("") }
    }

    /// The server does not provide something that the rule needs; `hint` is the line to add.
    pub fn server(what: impl Into<Cow<'static, str>>, hint: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: Kind::Server, what: What::Text(what.into()), hint: hint.into() }
    }

    /// Nothing is wrong: the rule does not apply to this request, which owes nothing to it.
    pub fn exempt() -> Self {
        let what = What::Text(Cow::Borrowed("nothing"));
        Self { kind: Kind::Exempt, what, hint: Cow::Borrowed("") }
    }

    /// [`client`](Self::client) for "the `name` noun".
    pub(super) fn client_named(name: &str, noun: &'static str) -> Self {
        let what = What::Named { article: "the", name: ShortText::new(name), noun };
        Self { kind: Kind::Client, what, hint: Cow::Borrowed("") }
    }

    /// [`ambiguous`](Self::ambiguous) for "exactly one `name` noun".
    pub(super) fn ambiguous_named(name: &str, noun: &'static str) -> Self {
        let what = What::Named { article: "exactly one", name: ShortText::new(name), noun };
        Self { kind: Kind::Ambiguous, what, hint: Cow::Borrowed("") }
    }

    /// [`server`](Self::server) for "the `name` noun".
    pub(super) fn server_named(name: &str, noun: &'static str, hint: &'static str) -> Self {
        let what = What::Named { article: "the", name: ShortText::new(name), noun };
        Self { kind: Kind::Server, what, hint: Cow::Borrowed(hint) }
    }

    /// Whether the client has to mend its request (`400`).
    pub fn is_client(&self) -> bool {
        matches!(self.kind, Kind::Client | Kind::Ambiguous)
    }

    /// Whether the client sent too much rather than too little; [`is_client`](Self::is_client) holds
    /// as well.
    pub fn is_ambiguous(&self) -> bool {
        self.kind == Kind::Ambiguous
    }

    /// Whether the server has to mend its set-up (`500`).
    pub fn is_server(&self) -> bool {
        self.kind == Kind::Server
    }

    /// Whether the rule just does not apply.
    pub fn is_exempt(&self) -> bool {
        self.kind == Kind::Exempt
    }

    /// What is missing, in words that fit behind "lacks".
    pub fn what(&self) -> Cow<'_, str> {
        match &self.what {
            What::Text(text) => Cow::Borrowed(text),
            named @ What::Named { .. } => Cow::Owned(named.to_string()),
        }
    }

    /// How the operator mends it; empty where it is the client's to mend.
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
