use sluicegate_core::Rejection;

use super::Context;
use crate::document::{Redirect, Reject};
use crate::source::DocumentPath;

/// What happens to a request that a rule refuses.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Greater is stricter.
    pub(crate) strictness: u8,
    pub(crate) rejection: Rejection,
}

impl Refused {
    pub(super) fn new(
        reject: Option<&Reject>,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        let (strictness, rejection) = match reject {
            Some(Reject::Shadow) => (0, Rejection::shadow()),
            Some(Reject::Degrade) => (1, Rejection::degrade()),
            Some(Reject::Redirect(redirect)) => (2, redirection(redirect, path, context)?),
            None | Some(Reject::Block) => (3, Rejection::block()),
        };
        Some(Self { strictness, rejection })
    }
}

/// The default.
pub(crate) static BLOCKED: Refused = Refused { strictness: 3, rejection: Rejection::block() };

pub(super) fn redirection(
    Redirect { redirect: target, status }: &Redirect,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<Rejection> {
    let is_uri = !target.is_empty() && target.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_uri {
        context.report(
            &path.name("redirect"),
            format!("{target:?} is not a URI, expected visible ASCII characters"),
        );
    }
    let status = status.unwrap_or(307);
    let redirects = matches!(status, 302 | 303 | 307 | 308);
    if !redirects {
        context.report(
            &path.name("status"),
            format!("{status} is not a redirection, expected 302, 303, 307 or 308"),
        );
    }
    (is_uri && redirects).then(|| Rejection::redirect(target).status(status))
}
