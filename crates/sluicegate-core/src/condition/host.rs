use std::borrow::Cow;
use std::net::Ipv6Addr;

use super::{Condition, PatternError};
use crate::key::{Host, Missing, View, host_address, host_of, sound_name};

impl Host {
    /// Holds for requests for this host. Case, port and a final dot do not matter. A request that names two hosts, or
    /// something that is not a host name, is refused as for the key [`Host`].
    ///
    /// ```
    /// use sluicegate::{Ip, Limit};
    /// use sluicegate::key::Host;
    ///
    /// let rule = Limit::per_minute(10).by(Ip::peer()).when(Host.is("api.example.com"));
    /// ```
    ///
    /// # Panics
    ///
    /// If it is not the name or the address of a host. For hosts from configuration there is
    /// [`try_matches`](Self::try_matches).
    #[track_caller]
    pub fn is(self, host: impl Into<Cow<'static, str>>) -> HostIs {
        let host = host.into();
        let made = HostIs::parse(&host, false);
        made.unwrap_or_else(|problem| panic!("{}", PatternError::new("host", &host, problem)))
    }

    /// Holds for requests for any host below a name, at any depth: `*.example.com` is
    /// `api.example.com` and `a.b.example.com`, not `example.com`. Without `*.` it is
    /// [`is`](Self::is).
    ///
    /// # Panics
    ///
    /// If the pattern is not valid. For patterns from configuration there is [`try_matches`](Self::try_matches).
    #[track_caller]
    pub fn matches(self, pattern: &str) -> HostIs {
        self.try_matches(pattern).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`matches`](Self::matches), for patterns from configuration.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the pattern.
    pub fn try_matches(self, pattern: &str) -> Result<HostIs, PatternError> {
        let below = pattern.strip_prefix("*.");
        HostIs::parse(below.unwrap_or(pattern), below.is_some())
            .map_err(|problem| PatternError::new("host", pattern, problem))
    }
}

/// Holds for requests for a host, or those below a name; see [`Host::is`].
#[derive(Debug, Clone)]
pub struct HostIs {
    name: String,
    address: Option<Ipv6Addr>,
    below: bool,
}

impl HostIs {
    fn parse(host: &str, below: bool) -> Result<Self, &'static str> {
        if host.contains('*') {
            return Err("has a `*` elsewhere than in a `*.` at its beginning");
        }
        let name = sound_name(host).filter(|_| host.trim() == host).ok_or(
            "is not a host: expected letters of ASCII, digits, `-`, `.` and `_`, or an address, that of IPv6 in \
             brackets; requests name `bücher.example` as `xn--bcher-kva.example`",
        )?;
        let address = host_address(name);
        match (name, address) {
            ("", _) => Err("names no host"),
            (_, Some(_)) if below => Err("is below an address, where there are no hosts"),
            _ => Ok(Self { name: name.into(), address, below }),
        }
    }

    /// Whether it holds for the hosts below a name, not for the name itself.
    pub(super) fn is_pattern(&self) -> bool {
        self.below
    }

    /// The name as [`canonical`] writes it.
    pub(super) fn canonical_name(&self) -> Box<str> {
        canonical(&self.name).into()
    }

    fn is_name(&self, host: &str) -> bool {
        match self.address {
            Some(address) => host_address(host) == Some(address),
            None => host.eq_ignore_ascii_case(&self.name),
        }
    }

    fn is_below(&self, host: &str) -> bool {
        let parts =
            host.len().checked_sub(self.name.len() + 1).and_then(|at| host.split_at_checked(at));
        let Some((below, name)) = parts else { return false };
        let name = name.strip_prefix('.');
        !below.is_empty() && name.is_some_and(|name| name.eq_ignore_ascii_case(&self.name))
    }
}

/// A host so that equal hosts have equal texts: in lower case, and an address in its shortest form.
pub(super) fn canonical(host: &str) -> Cow<'_, str> {
    match host_address(host) {
        Some(address) => format!("[{address}]").into(),
        None if host.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            host.to_ascii_lowercase().into()
        }
        None => host.into(),
    }
}

impl<V: View> Condition<V> for HostIs {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        let host = host_of(view)?.unwrap_or_default();
        Ok(if self.below { self.is_below(host) } else { self.is_name(host) })
    }
}
