//! Errors in the form of an API.

use super::Dialect;
use super::field::Api;
use crate::http::fields;
use crate::http::line::Text;

impl Api {
    /// The body of an error. `code` is told to OpenAI's clients only.
    pub(crate) fn error(self, kind: &str, code: Option<&str>, message: &str) -> String {
        let mut out = String::new();
        match self {
            Self::OpenAi => {
                out.text("{\"error\":{\"message\":");
                out.quoted(message);
                out.text(",\"type\":");
                out.quoted(kind);
                out.text(",\"param\":null,\"code\":");
                match code {
                    Some(code) => out.quoted(code),
                    None => out.text("null"),
                }
                out.text("}}\n");
            }
            Self::Anthropic => {
                out.text("{\"type\":\"error\",\"error\":{\"type\":");
                out.quoted(kind);
                out.text(",\"message\":");
                out.quoted(message);
                out.text("}}\n");
            }
        }
        out
    }
}

/// The answer to a request whose body is longer than a layer reads: `413 Content Too Large`.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct TooLarge {
    most: usize,
    api: Option<Api>,
}

impl TooLarge {
    /// Bodies of at most `most` bytes are read. The answer is a problem document (RFC 9457).
    pub const fn new(most: usize) -> Self {
        Self { most, api: None }
    }

    /// Changes the largest body.
    pub const fn at_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Answers in the form of the dialect's API.
    pub const fn dialect(self, dialect: &Dialect) -> Self {
        Self { api: Some(dialect.api()), ..self }
    }

    /// The largest body that is read, in bytes.
    pub const fn most(self) -> usize {
        self.most
    }

    /// The `Content-Type` of the answer.
    pub const fn content_type(self) -> &'static str {
        match self.api {
            Some(_) => "application/json",
            None => fields::PROBLEM_JSON,
        }
    }

    /// The body of the answer.
    pub fn body(self) -> String {
        let detail = format!("the body is larger than {} bytes", self.most);
        let message = format!("Request too large: {detail}. Send less.");
        match self.api {
            Some(api @ Api::OpenAi) => api.error("invalid_request_error", None, &message),
            Some(api @ Api::Anthropic) => api.error("request_too_large", None, &message),
            None => format!(
                "{{\"type\":\"about:blank\",\"title\":\"Content too large\",\"status\":413,\
                 \"detail\":\"{detail}\"}}\n"
            ),
        }
    }
}
