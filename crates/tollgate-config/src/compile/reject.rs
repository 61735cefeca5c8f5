use tollgate_core::Rejection;

use super::Context;
use crate::document::{Redirect, Reject};
use crate::path::Path;

/// What happens to a request that a rule refuses.
pub(super) fn rejection(
    reject: Option<&Reject>,
    path: &Path<'_>,
    context: &Context<'_>,
) -> Option<Rejection> {
    Some(match reject {
        None | Some(Reject::Block) => Rejection::block(),
        Some(Reject::Shadow) => Rejection::shadow(),
        Some(Reject::Degrade) => Rejection::degrade(),
        Some(Reject::Redirect(redirect)) => redirection(redirect, path, context)?,
    })
}

fn redirection(
    Redirect { redirect: target, status }: &Redirect,
    path: &Path<'_>,
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
