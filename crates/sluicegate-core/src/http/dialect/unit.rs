use std::fmt;

/// What a policy counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Requests.
    Requests,
    /// Tokens of input and output.
    Tokens,
    /// Tokens of input.
    InputTokens,
    /// Tokens of output.
    OutputTokens,
}

impl Unit {
    pub(super) const ALL: [Self; 4] =
        [Self::Requests, Self::Tokens, Self::InputTokens, Self::OutputTokens];
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::InputTokens => "input tokens",
            Self::OutputTokens => "output tokens",
        })
    }
}
