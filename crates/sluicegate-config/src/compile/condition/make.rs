use std::collections::BTreeMap;

use sluicegate_core::condition::{AnyOf, Equals, Present};
use sluicegate_core::key::{Cookie, Host, Method, Path as PathKey, Query};
use sluicegate_core::{Claim, Header, Route};

use super::never::leaves_nothing;
use super::{Condition, Test, Value, hours};
use crate::absent::GeoKey;
use crate::compile::Context;
use crate::compile::context::Name;
use crate::document::{self, Expected, Texts};
use crate::source::DocumentPath;

impl Condition {
    /// Holds for every request.
    #[cfg(feature = "throttle")]
    pub(in crate::compile) const fn always() -> Self {
        Self(Vec::new())
    }

    /// Errors are reported and left out; then the document is not compiled.
    pub(in crate::compile) fn new(
        spec: &document::Condition,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Self {
        let maker = Maker { path, context };
        let (mut tests, problems) = (Vec::new(), context.problems());
        maker.add_target(spec, &mut tests);
        maker.add_named(spec, &mut tests);
        maker.add_address(spec, &mut tests);
        tests.extend(spec.wildcards.iter().cloned().map(Test::Wildcard));
        if let Some(spec) = &spec.hours {
            tests.extend(hours(spec, &path.name("hours"), context).map(Test::Hours));
        }
        if let Some(inner) = &spec.not {
            tests.push(Test::Not(Self::new(inner, &path.name("not"), context)));
            if context.document.source.is_of_text() && leaves_nothing(spec, inner) {
                context.report(&path.name("not"), NEVER);
            }
        }
        context.not_empty(&path.name("any"));
        if !spec.any.is_empty() {
            let path = path.name("any");
            let inner = spec.any.iter().enumerate();
            let any = inner.map(|(i, spec)| Self::new(spec, &path.index(i), context)).collect();
            tests.push(Test::Any(AnyOf(any)));
        }
        // Wherever a condition is written, there is a word for all requests: leaving it out.
        let is_written = context.document.source.is_of_text();
        if is_written && *spec == document::Condition::default() && context.problems() == problems {
            context.report(path, ALWAYS);
        }
        Self(tests)
    }
}

const ALWAYS: &str =
    "the condition is empty and would hold for every request: expected a part such as `method`";

const NEVER: &str = "this excludes every request that is left, so the condition would never hold: expected one that some of them meet";

struct Maker<'a> {
    path: &'a DocumentPath<'a>,
    context: &'a Context<'a>,
}

impl Maker<'_> {
    fn add_target(&self, spec: &document::Condition, tests: &mut Vec<Test>) {
        if let Some(methods) = self.each("method", spec.method.as_ref(), method) {
            tests.extend(Method.try_is_any(methods).ok().map(Test::Method));
        }
        if let Some(any) = self.each("path", spec.path.as_ref(), |text| PathKey.try_matches(text)) {
            tests.push(Test::Path(AnyOf(any)));
        }
        if let Some(any) = self.each("route", spec.route.as_ref(), route) {
            tests.push(Test::Route(AnyOf(any.into_iter().map(|text| Route.is(text)).collect())));
        }
        if let Some(any) = self.each("host", spec.host.as_ref(), |text| Host.try_matches(text)) {
            tests.push(Test::Host(AnyOf(any)));
        }
    }

    fn add_named(&self, spec: &document::Condition, tests: &mut Vec<Test>) {
        self.add_values("header", &spec.header, |name, expected| {
            let value = value(Header(name), expected, Header::is_present, Header::equals);
            tests.push(Test::Header(value));
        });
        self.add_values("query", &spec.query, |name, expected| {
            let value = value(Query(name), expected, Query::is_present, Query::equals);
            tests.push(Test::Query(value));
        });
        self.add_values("cookie", &spec.cookie, |name, expected| {
            let value = value(Cookie(name), expected, Cookie::is_present, Cookie::equals);
            tests.push(Test::Cookie(value));
        });
        self.add_values("claim", &spec.claim, |name, expected| {
            let value = value(Claim(name), expected, Claim::is_present, Claim::equals);
            tests.push(Test::Claim(value));
        });
    }

    fn add_address(&self, spec: &document::Condition, tests: &mut Vec<Test>) {
        let Self { path, context } = self;
        let network = |text: &str| context.ip.clone().within([text]).map(|_| text.to_owned());
        if let Some(networks) = self.each("network", spec.network.as_ref(), network) {
            let within = context.check(&path.name("network"), context.ip.clone().within(networks));
            tests.extend(within.map(Test::Network));
        }
        if spec.country.is_some() {
            let key = context.country(&path.name("country"));
            tests.extend(self.geo("country", spec.country.as_ref(), key));
        }
        if spec.region.is_some() {
            let key = context.region(&path.name("region"));
            tests.extend(self.geo("region", spec.region.as_ref(), key));
        }
    }

    fn geo(&self, name: &str, spec: Option<&Texts>, key: Option<GeoKey>) -> Option<Test> {
        let key = key?;
        let code = |text: &str| key.clone().is_in([text]).map(|_| text.to_owned());
        let codes = self.each(name, spec, code)?;
        key.is_in(codes).map(Test::Geo).ok()
    }

    /// The result of `make` for each text of `name`, if all of them are valid.
    fn each<T, E: ToString>(
        &self,
        name: &str,
        spec: Option<&Texts>,
        make: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Vec<T>> {
        let (spec, path) = (spec?, self.path.name(name));
        if let Texts::One(text) = spec {
            return self.context.check(&path, make(text)).map(|made| vec![made]);
        }
        let texts = spec.as_slice();
        if texts.is_empty() {
            self.context.report(&path, "the list is empty, expected at least one");
        }
        let made = texts.iter().enumerate();
        let made = made.map(|(i, text)| self.context.check(&path.index(i), make(text)));
        made.collect::<Vec<_>>().into_iter().collect()
    }

    fn add_values(
        &self,
        kind: &str,
        spec: &BTreeMap<String, Expected>,
        mut add: impl FnMut(Name, &Expected),
    ) {
        let list = self.path.name(kind);
        self.context.not_without_names(kind, &list);
        for (name, expected) in spec {
            let path = list.name(name);
            let sound = match kind {
                "header" => self.context.request_header(name, &path),
                _ => self.context.name(kind, name, &path),
            };
            if matches!(expected, Expected::Any(texts) if texts.is_empty()) {
                let empty = "the list is empty, expected at least one";
                self.context.report(&path, empty);
            }
            if kind == "header" && texts(expected).iter().any(|text| !is_field_value(text)) {
                let never = "no header has such a value: expected one without spaces at its ends and control characters";
                self.context.report(&path, never);
            }
            if let Some(name) = sound {
                add(name, expected);
            }
        }
    }
}

fn texts(expected: &Expected) -> &[String] {
    match expected {
        Expected::Present(_) => &[],
        Expected::Equal(text) => std::slice::from_ref(text),
        Expected::Any(texts) => texts,
    }
}

/// Lines are compared without the spaces and tabs around them.
fn is_field_value(text: &str) -> bool {
    text.trim_matches([' ', '\t']) == text
        && !text.chars().any(|c| c != '\t' && c.is_ascii_control())
}

fn value<S: Clone>(
    source: S,
    expected: &Expected,
    present: impl Fn(S) -> Present<S>,
    equals: impl Fn(S, String) -> Equals<S>,
) -> Value<S> {
    let equal = |text: &String| equals(source.clone(), text.clone());
    match expected {
        Expected::Present(true) => Value::Present(present(source)),
        Expected::Present(false) => Value::Absent(present(source)),
        Expected::Equal(text) => Value::Equal(AnyOf(vec![equal(text)])),
        Expected::Any(texts) => Value::Equal(AnyOf(texts.iter().map(equal).collect())),
    }
}

/// Well-known methods, which are often written in lower case by mistake.
const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

fn method(text: &str) -> Result<String, String> {
    let known = METHODS.iter().find(|known| known.eq_ignore_ascii_case(text));
    match known {
        Some(known) if *known != text => {
            Err(format!("methods are case-sensitive, expected `{known}` instead of `{text}`"))
        }
        _ if text.is_empty() => Err("the method is empty, expected one such as `POST`".to_owned()),
        _ => Method
            .try_is_any([text.to_owned()])
            .map(|_| text.to_owned())
            .map_err(|error| error.to_string()),
    }
}

fn route(text: &str) -> Result<String, String> {
    match text.starts_with('/') {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "the route `{text}` does not start with `/`, expected one such as `/users/{{id}}`"
        )),
    }
}
