use std::fmt;

use super::rule::Unit;

/// The most descriptors of one request. Envoy's configuration has a handful.
pub const MOST_DESCRIPTORS: usize = 64;

/// The most entries of one descriptor.
pub const MOST_ENTRIES: usize = 64;

/// What Envoy asks: one request, described in several ways.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request<'r> {
    /// The domain, which names a file.
    pub domain: &'r str,
    /// The descriptions. Each may meet one limit.
    pub descriptors: Vec<Descriptor<'r>>,
}

impl Request<'_> {
    /// Checks that the request has a domain and descriptors, and not too many.
    ///
    /// # Errors
    ///
    /// If it has not.
    pub fn check(&self) -> Result<(), BadRequest> {
        let bad = |what: String| Err(BadRequest::new(what));
        if self.domain.is_empty() {
            return bad("the domain is empty: expected that of a file".to_owned());
        }
        if self.descriptors.is_empty() {
            return bad("there is no descriptor: expected at least one".to_owned());
        }
        if self.descriptors.len() > MOST_DESCRIPTORS {
            // How many match is the client's choice, and Envoy lets requests pass whose calls fail.
            let what = format!("there are more than {MOST_DESCRIPTORS} descriptors");
            return Err(BadRequest::of_client(what));
        }
        if self.descriptors.iter().any(|descriptor| descriptor.entries.len() > MOST_ENTRIES) {
            return bad(format!("a descriptor has more than {MOST_ENTRIES} entries"));
        }
        Ok(())
    }
}

/// One description of a request: keys and values, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor<'r> {
    /// The keys with their values. They may be any bytes: Envoy copies values from the header fields of clients.
    pub entries: Vec<(&'r [u8], &'r [u8])>,
    /// What is charged.
    pub hits: Hits,
    /// A limit that the request brings along: how much in which unit.
    pub limit: Option<(u32, Unit)>,
}

impl<'r> Descriptor<'r> {
    /// A descriptor of one request with these keys and values.
    pub fn of<T: AsRef<[u8]> + ?Sized + 'r>(
        entries: impl IntoIterator<Item = (&'r T, &'r T)>,
    ) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
        Self { entries: entries.collect(), hits: Hits::Spend(1), limit: None }
    }

    /// The same descriptor with other hits.
    #[must_use]
    pub fn with(self, hits: Hits) -> Self {
        Self { hits, ..self }
    }
}

/// What a descriptor is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hits {
    /// This number of hits, if all limits of the request admit it. A refused request is charged nothing.
    Spend(u64),
    /// This number of hits, or what is left where they do not fit. Envoy sends the use of a request that it has served in
    /// the same form as a request, so a use that is more than what is left has to count.
    Report(u64),
    /// Nothing. Refused if nothing is left.
    Look,
    /// Gives this number of hits back, down to an unused window at most.
    GiveBack(u64),
}

impl Hits {
    /// How much is charged.
    pub(super) const fn spent(self) -> u64 {
        match self {
            Self::Spend(hits) | Self::Report(hits) => hits,
            Self::Look | Self::GiveBack(_) => 0,
        }
    }

    /// The hits of a descriptor in the protocol: its own number, if it has one, or else that of the request, in which
    /// 0 stands for 1.
    pub const fn of(own: Option<u64>, is_negative: bool, request: u32) -> Self {
        match own {
            Some(0) => Self::Look,
            Some(hits) if is_negative => Self::GiveBack(hits),
            Some(hits) => Self::Report(hits),
            None => {
                let hits = if request == 0 { 1 } else { request as u64 };
                if is_negative { Self::GiveBack(hits) } else { Self::Spend(hits) }
            }
        }
    }
}

/// A request that cannot be decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    why: String,
    is_client: bool,
}

impl BadRequest {
    /// A request that cannot be decided, for this reason.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_client: false }
    }

    /// A request that cannot be decided until the client changes it, for this reason.
    pub fn of_client(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_client: true }
    }

    /// Whether the client has the choice. Such a request is to be refused, and not to fail.
    pub fn is_client(&self) -> bool {
        self.is_client
    }
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for BadRequest {}
