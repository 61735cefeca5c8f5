use sluicegate_core::Rejection;

use super::Context;
use crate::document::{Redirect, Reject};
use crate::source::DocumentPath;

/// What happens to a request that a rule refuses.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The less generous, the more.
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

/// What happens where no rule says it.
pub(crate) static BLOCKED: Refused = Refused { strictness: 3, rejection: Rejection::block() };

fn redirection(
    Redirect { redirect: target, status }: &Redirect,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<Rejection> {
    let is_uri = !target.is_empty() && target.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_uri {
        context.wrong(
            &path.name("redirect"),
            format!("{target:?} is no URI, expected one of visible ASCII characters"),
        );
    }
    let status = status.unwrap_or(307);
    let redirects = matches!(status, 302 | 303 | 307 | 308);
    if !redirects {
        context.wrong(
            &path.name("status"),
            format!("{status} does not redirect to a place, expected 302, 303, 307 or 308"),
        );
    }
    (is_uri && redirects).then(|| Rejection::redirect(target).status(status))
}
