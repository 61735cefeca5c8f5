use std::cell::RefCell;
use std::time::Duration;

use tollgate_core::{Ip, Limit};

use super::key::Name;
use crate::document::Document;
use crate::environment::Environment;
use crate::origin::Origin;
use crate::path::Path;
use crate::problem::{Problem, Problems};

/// What a document is compiled with, and what turns out to be wrong with it, all of it.
pub(super) struct Context<'a> {
    pub(super) environment: &'a Environment,
    /// The client's address, by the proxies of the document.
    pub(super) ip: Ip,
    origin: &'a Origin,
    problems: RefCell<Vec<Problem>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(document: &'a Document, environment: &'a Environment) -> Self {
        let mut context = Self {
            environment,
            ip: Ip::peer(),
            origin: &document.origin,
            problems: RefCell::default(),
        };
        if let Some(ip) = context.address(document) {
            context.ip = ip;
        }
        context
    }

    fn address(&self, document: &Document) -> Option<Ip> {
        let proxies = document.proxies.as_ref()?;
        let path = Path::Root.name("proxies");
        let trusted = self.networks(&proxies.trusted, &path.name("trusted"));
        let ip = Ip::try_behind(trusted?).ok()?;
        match &proxies.header {
            None => Some(ip),
            Some(name) => {
                let name = self.header_name(name, &path.name("header"))?;
                Some(ip.header(name.to_string()))
            }
        }
    }

    /// Networks, each of which was looked at.
    pub(super) fn networks<'t>(
        &self,
        texts: &'t [String],
        path: &Path<'_>,
    ) -> Option<Vec<&'t str>> {
        let mut fine = true;
        for (i, text) in texts.iter().enumerate() {
            if Ip::try_behind([text]).is_err() {
                let path = path.index(i);
                self.wrong(&path, format!("`{text}` is no address and no network, expected such as `10.0.0.0/8`"));
                fine = false;
            }
        }
        fine.then(|| texts.iter().map(String::as_str).collect())
    }

    /// Notes what is wrong with the value at `path`.
    pub(super) fn wrong(&self, path: &Path<'_>, message: impl Into<String>) {
        self.problems.borrow_mut().push(self.origin.problem(path, message));
    }

    /// The value, or else a note of why there is none.
    pub(super) fn check<T, E: ToString>(
        &self,
        path: &Path<'_>,
        value: Result<T, E>,
    ) -> Option<T> {
        value.map_err(|error| self.wrong(path, error.to_string())).ok()
    }

    /// A name that is not empty.
    pub(super) fn name(&self, kind: &str, name: &str, path: &Path<'_>) -> Option<Name> {
        if name.is_empty() {
            self.wrong(path, format!("the name is empty, expected the name of a {kind}"));
            return None;
        }
        Some(name.into())
    }

    /// A name that a header can have.
    pub(super) fn header_name(&self, name: &str, path: &Path<'_>) -> Option<Name> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(fits) {
            self.wrong(path, format!("`{name}` is no name of a header, expected such as `x-api-key`"));
            return None;
        }
        Some(name.into())
    }

    /// A time, as limits have it: `90 seconds`.
    pub(super) fn time(&self, text: &str, path: &Path<'_>) -> Option<Duration> {
        let limit = format!("fixed 1 per {text}").parse::<Limit>().ok();
        let period = limit.and_then(|limit| limit.period());
        // Nothing else may follow.
        let plain = period.filter(|&period| Limit::try_fixed_window(1, period).ok() == limit);
        if plain.is_none() {
            let expected = "expected a number and a unit, such as `90 seconds` or `5 minutes`";
            self.wrong(path, format!("`{text}` is no time, {expected}"));
        }
        plain
    }

    /// A percentage, from 1 to 100.
    pub(super) fn percent(&self, text: &str, path: &Path<'_>) -> Option<u64> {
        let number = text.strip_suffix('%').map(str::trim_end);
        let digits = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let percent = digits.and_then(|digits| digits.parse().ok());
        let fits = percent.filter(|percent| (1..=100).contains(percent));
        if fits.is_none() {
            self.wrong(path, format!("`{text}` is no percentage, expected such as `80%`, from 1% to 100%"));
        }
        fits
    }

    /// What was made, if nothing is wrong.
    pub(super) fn finish<T>(self, made: T) -> Result<T, Problems> {
        match Problems::of(self.problems.into_inner()) {
            Some(problems) => Err(problems),
            None => Ok(made),
        }
    }
}
