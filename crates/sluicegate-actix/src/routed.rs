use actix_web::HttpRequest;
use sluicegate_core::condition::MAX_PATH;

use crate::pattern::{is_filled_by, may_match, refilled};

/// How far actix-web has routed a request, and which resources may still answer it.
///
/// actix-web routes by the decoded path, one level at a time. The part that was matched before the limit is known.
/// The rest depends on guards that cannot be asked, and on `NormalizePath`, which may run behind the limit.
#[derive(Clone, Copy)]
pub(crate) struct Routed<'r> {
    request: &'r HttpRequest,
    /// As actix-web routes it: percent-decoded, but for `%2F`, `%25` and `%2B`.
    path: &'r str,
}

impl<'r> Routed<'r> {
    pub(crate) fn of(request: &'r HttpRequest) -> Self {
        Self { request, path: request.match_info().as_str() }
    }

    /// The pattern of the first resource that matches the path; the actual one if the limit is around that resource.
    pub(crate) fn pattern(self) -> Option<String> {
        let found = self.request.resource_map().match_pattern(self.path);
        if !self.is_done() || found.as_deref().is_some_and(|found| self.answers(found)) {
            return found;
        }
        refilled(self.captured(), self.path).or(found)
    }

    /// The pattern for the path as `NormalizePath` makes it, in one of its three ways.
    pub(crate) fn pattern_when_tidied(self) -> Option<String> {
        let mut merged = String::with_capacity(self.path.len() + 1);
        for c in self.path.chars().filter(|_| self.path.len() <= MAX_PATH) {
            if c != '/' || !merged.ends_with('/') {
                merged.push(c);
            }
        }
        let trimmed = merged.trim_end_matches('/');
        let paths = [merged.as_str(), trimmed, &format!("{trimmed}/")];
        let others = paths.into_iter().filter(|path| *path != self.path && !path.is_empty());
        others.filter_map(|path| self.request.resource_map().match_pattern(path)).next()
    }

    /// Whether a resource with this pattern may answer the request.
    pub(crate) fn may_be(self, pattern: &str) -> bool {
        if self.is_done() {
            return is_filled_by(pattern, self.captured(), self.path)
                || self.is_filled_with_a_slash(pattern);
        }
        self.path.len() > MAX_PATH || may_match(pattern, self.path)
    }

    /// Whether the resource whose first pattern is `found` is the one that has matched. If `found` does not
    /// match the path, another pattern of the same resource does.
    fn answers(self, found: &str) -> bool {
        is_filled_by(found, self.captured(), self.path) || !may_match(found, self.path)
    }

    /// Whether the pattern is filled once a slash is added. The limit may be around a scope whose prefix is
    /// the whole path, with a `NormalizePath` behind it.
    fn is_filled_with_a_slash(self, pattern: &str) -> bool {
        !self.path.ends_with('/')
            && is_filled_by(pattern, self.captured(), &format!("{}/", self.path))
    }

    /// Whether the whole path is matched: the limit is around the resource that answers, or around a scope
    /// whose prefix is the whole path.
    fn is_done(self) -> bool {
        let matched = self.request.match_info();
        matched.unprocessed().is_empty() && !self.path.is_empty()
    }

    fn captured(self) -> impl Iterator<Item = (&'r str, &'r str)> {
        self.request.match_info().iter()
    }
}
