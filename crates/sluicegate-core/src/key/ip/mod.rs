use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::extract::is_token;
use super::hop::{Form, hops};
use super::nat64::Translator;
use super::network::{cut_v4, cut_v6};
use super::{Key, KeyBuf, Missing, Proxies, ProxiesError, View, tag};
use crate::key::network::NetworkError;
use crate::standard_error::{self, is_recorded};

/// The largest number of hops that are read, and of proxies that can be counted. Real chains have a handful. Without
/// a bound, a proxy that forwards to itself would decide how long we read.
const MAX_HOPS: usize = 64;

/// The client's address.
///
/// It cannot be guessed. A forwarding header holds whatever the client wrote, followed by what the proxies added. So
/// the operator says which proxies exist, and which one header they write.
///
/// - [`Ip::peer`]: no proxy is in front. Headers are ignored.
/// - [`Ip::behind`]: these proxies are in front, by address. A request that bypasses them is charged to its own peer,
///   whatever headers it has.
/// - [`Ip::hops`]: this many proxies are in front, and their addresses are unknown.
///
/// An IPv4-mapped IPv6 address is read as IPv4. An IPv6 address is cut to its first 64 bits, the least that a
/// subscriber gets; see [`prefix_v6`](Self::prefix_v6). IPv4 clients that reach an IPv6 server through a translator
/// can be told apart with [`nat64`](Self::nat64).
///
/// The page `proxies` of the guide in `sluicegate` has the line of code for nginx, AWS, Cloudflare and Kubernetes,
/// with the proxy's configuration.
///
/// ```
/// use sluicegate::Ip;
///
/// let key = Ip::behind(["10.0.0.0/8", "::1"]).header("forwarded").prefix_v6(56);
/// # let _ = key;
/// ```
#[derive(Debug, Clone)]
pub struct Ip {
    trust: Trust,
    header: Cow<'static, str>,
    form: Form,
    prefix_v4: u8,
    prefix_v6: u8,
    /// The prefixes of IPv4-to-IPv6 translators. Usually empty, which costs no allocation.
    translators: Vec<Translator>,
    /// Whether a request without the header was already reported, by this key or a clone of it.
    is_told: Arc<AtomicBool>,
}

#[derive(Debug, Clone)]
enum Trust {
    Nobody,
    Named(Proxies),
    Counted(usize),
}

impl Ip {
    /// The other end of the connection. Right if clients connect directly.
    ///
    /// Behind a proxy, this is the proxy's address, and all clients share one budget.
    pub fn peer() -> Self {
        Self::new(Trust::Nobody)
    }

    /// The client behind proxies with these addresses: a [`Proxies`], or something that converts into it.
    ///
    /// Starts with the peer. Each address of a trusted proxy is replaced by the address that this proxy wrote down,
    /// read from the right over all lines of the header (`x-forwarded-for`, unless [`header`](Self::header) chooses
    /// another). The first address that does not belong to a trusted proxy is the client's. The walk ends at the last
    /// trusted address if a hop does not tell its address (`unknown`, `_hidden`, nothing, garbage), and after 64
    /// hops. It never guesses further left.
    ///
    /// Every proxy named here has to append to that header, or replace it. A proxy that passes the header on
    /// unchanged would vouch for whatever the client wrote.
    ///
    /// # Panics
    ///
    /// If an entry is neither an address nor a network; the message names it. For lists from configuration there is
    /// [`try_behind`](Self::try_behind).
    #[track_caller]
    pub fn behind<P>(proxies: P) -> Self
    where
        P: TryInto<Proxies>,
        P::Error: Into<ProxiesError>,
    {
        Self::try_behind(proxies).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`behind`](Self::behind), for lists from configuration.
    ///
    /// ```
    /// use sluicegate::Ip;
    ///
    /// let from_configuration = "10.0.0.0/8, 192.0.2.300";
    /// let error = Ip::try_behind(from_configuration).unwrap_err();
    /// assert_eq!(error.entry(), "192.0.2.300");
    /// ```
    ///
    /// # Errors
    ///
    /// Names the entry that is neither an address nor a network.
    pub fn try_behind<P>(proxies: P) -> Result<Self, ProxiesError>
    where
        P: TryInto<Proxies>,
        P::Error: Into<ProxiesError>,
    {
        Ok(Self::new(Trust::Named(proxies.try_into().map_err(Into::into)?)))
    }

    /// The client behind `count` proxies whose addresses are unknown.
    ///
    /// The peer is the nearest proxy, so the client is the `count`-th address of the header counted from the right:
    /// `hops(1)` takes the last one, and `hops(0)` is [`peer`](Self::peer). If the header has fewer addresses, or no
    /// address in that place, the request did not come through all of the proxies. It is then charged to its peer,
    /// the one address that a client cannot choose.
    ///
    /// Use it only if this server cannot be reached except through all of the proxies. A client that bypasses one of
    /// them can choose its own address. [`behind`](Self::behind) does not have that weakness.
    ///
    /// # Panics
    ///
    /// If `count` is more than 64.
    #[track_caller]
    pub fn hops(count: usize) -> Self {
        assert!(count <= MAX_HOPS, "{count} proxies are more than the {MAX_HOPS} that are walked");
        Self::new(Trust::Counted(count))
    }

    /// Reads the hops from this header only: `forwarded` as RFC 7239 says, any other (`x-forwarded-for`, `x-real-ip`,
    /// `cf-connecting-ip`) as addresses separated by commas.
    ///
    /// # Panics
    ///
    /// If it is not a valid header name, or after [`peer`](Self::peer), which trusts no header.
    #[track_caller]
    pub fn header(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        let name = name.into();
        assert!(is_token(name.as_bytes()), "`{name}` is no header name");
        assert!(
            !matches!(self.trust, Trust::Nobody),
            "`Ip::peer()` reads no header: say with `Ip::behind` whose `{name}` is to be believed"
        );
        self.form = match name.eq_ignore_ascii_case("forwarded") {
            true => Form::Forwarded,
            false => Form::List,
        };
        self.header = name;
        self
    }

    /// How many leading bits of an IPv4 address form the key. The default is 32.
    ///
    /// # Panics
    ///
    /// If `bits` is more than 32.
    #[track_caller]
    pub fn prefix_v4(mut self, bits: u8) -> Self {
        assert!(bits <= 32, "an IPv4 address has no {bits} bits, only 32");
        self.prefix_v4 = bits;
        self
    }

    /// How many leading bits of an IPv6 address form the key. The default is 64.
    ///
    /// With more than 64, one client can use many keys. Many subscribers get a /56 or a /48 and can choose among the
    /// networks within.
    ///
    /// # Panics
    ///
    /// If `bits` is more than 128.
    #[track_caller]
    pub fn prefix_v6(mut self, bits: u8) -> Self {
        assert!(bits <= 128, "an IPv6 address has no {bits} bits, only 128");
        self.prefix_v6 = bits;
        self
    }

    /// Reads an IPv6 address with one of these prefixes as the IPv4 address that a translator has embedded in it
    /// (NAT64, RFC 6052). `64:ff9b::/96` is the well-known prefix. An operator may have its own, such as
    /// `64:ff9b:1::/96`, of 32, 40, 48, 56, 64 or 96 bits.
    ///
    /// Without this, all clients behind the translator are in one /64 and share one budget.
    ///
    /// ```
    /// use sluicegate::Ip;
    ///
    /// let key = Ip::peer().nat64(["64:ff9b::/96"]);
    /// # let _ = key;
    /// ```
    ///
    /// Name only prefixes that translators use. A client that owns such a network could choose any IPv4 address as
    /// its key.
    ///
    /// # Panics
    ///
    /// If an entry is not such a prefix; the message names it. For prefixes from configuration there is
    /// [`try_nat64`](Self::try_nat64).
    #[track_caller]
    pub fn nat64<S: AsRef<str>>(self, prefixes: impl IntoIterator<Item = S>) -> Self {
        self.try_nat64(prefixes).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`nat64`](Self::nat64), for prefixes from configuration.
    ///
    /// # Errors
    ///
    /// Names the entry that is not the prefix of a translator.
    pub fn try_nat64<S: AsRef<str>>(
        mut self,
        prefixes: impl IntoIterator<Item = S>,
    ) -> Result<Self, NetworkError> {
        let prefixes = prefixes.into_iter().map(|prefix| Translator::parse(prefix.as_ref().trim()));
        self.translators = prefixes.collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The whole address, not cut to a prefix: for the log, or for a list of exceptions.
    ///
    /// # Errors
    ///
    /// If the adapter does not know the peer. The error says what to add to the server.
    pub fn address<V: View>(&self, view: &V) -> Result<IpAddr, Missing> {
        self.address_of(view, view.peer())
    }

    fn address_of<V: View>(&self, view: &V, peer: Option<IpAddr>) -> Result<IpAddr, Missing> {
        let address = match peer {
            Some(peer) if matches!(self.trust, Trust::Nobody) => peer.to_canonical(),
            Some(peer) => self.behind_peer(view, peer.to_canonical()),
            None => return Err(Missing::server("the peer address", view.peer_hint())),
        };
        Ok(match address {
            IpAddr::V6(v6) if !self.translators.is_empty() => {
                let translated = self.translators.iter().find_map(|prefix| prefix.embedded(v6));
                translated.map_or(address, IpAddr::V4)
            }
            _ => address,
        })
    }

    fn behind_peer<V: View>(&self, view: &V, peer: IpAddr) -> IpAddr {
        let hops = || hops(view.header_lines(&self.header), self.form).take(MAX_HOPS);
        match &self.trust {
            Trust::Nobody | Trust::Counted(0) => peer,
            // A client that bypassed the proxies: what it says does not matter, and is not read.
            Trust::Named(proxies) if !proxies.contains(peer) => peer,
            Trust::Named(proxies) => match client(peer, proxies, hops()) {
                client if client == peer => self.charged_to_peer(view, peer),
                client => client,
            },
            Trust::Counted(count) => match hops().nth(count - 1).flatten() {
                Some(client) => client,
                None => self.charged_to_peer(view, peer),
            },
        }
    }

    /// If a proxy does not write the header, all of its clients share one key. This is reported once.
    #[cold]
    fn charged_to_peer<V: View>(&self, view: &V, peer: IpAddr) -> IpAddr {
        let is_told = || self.is_told.load(Ordering::Relaxed);
        if !is_told() && view.header_lines(&self.header).next().is_none() {
            let is_first = !self.is_told.swap(true, Ordering::Relaxed);
            if is_first {
                warn_unforwarded(&self.header, peer);
            }
        }
        peer
    }

    fn new(trust: Trust) -> Self {
        Self {
            trust,
            header: Cow::Borrowed("x-forwarded-for"),
            form: Form::List,
            prefix_v4: 32,
            prefix_v6: 64,
            translators: Vec::new(),
            is_told: Arc::default(),
        }
    }
}

/// Logged once for each key by a client's address.
fn warn_unforwarded(header: &str, proxy: IpAddr) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        header,
        %proxy,
        "a request from a trusted proxy has no such header, so it is charged to the proxy, as all its \
         clients are: name the header that the proxy writes with `Ip::header`. A proxy's own health \
         checks have none either"
    );
    standard_error::write_unless(is_recorded!(WARN), || {
        format!(
            "a request from the trusted proxy {proxy} has no header `{header}`: all its clients share one key"
        )
    });
}

/// The first address that is not a proxy's, or else that of the last proxy that told its address.
fn client(
    peer: IpAddr,
    proxies: &Proxies,
    mut hops: impl Iterator<Item = Option<IpAddr>>,
) -> IpAddr {
    let mut client = peer;
    while proxies.contains(client) {
        match hops.next().flatten() {
            Some(hop) => client = hop,
            None => break,
        }
    }
    client
}

impl<V: View> Key<V> for Ip {
    #[inline]
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        match (&self.trust, view.peer()) {
            // As most: nothing is translated, and the compiler need not move an IPv6 address about.
            (Trust::Nobody, Some(IpAddr::V4(peer))) => push_v4(key, self.prefix_v4, peer),
            (_, peer) => return self.write_any(view, peer, key),
        }
        Ok(())
    }
}

impl Ip {
    #[inline(never)]
    fn write_any<V: View>(
        &self,
        view: &V,
        peer: Option<IpAddr>,
        key: &mut KeyBuf,
    ) -> Result<(), Missing> {
        match self.address_of(view, peer)? {
            IpAddr::V4(v4) => push_v4(key, self.prefix_v4, v4),
            IpAddr::V6(v6) => push_v6(key, self.prefix_v6, v6),
        }
        Ok(())
    }
}

/// Written as one part: one word for IPv4, two words for IPv6 with up to 64 bits, three with more. The number of bits is
/// in it: a /48 and the first /64 within it have the same bytes.
#[inline]
fn push_v4(key: &mut KeyBuf, bits: u8, address: Ipv4Addr) {
    let [a, b, c, d] = cut_v4(address, bits).octets();
    key.push(&[tag::IPV4, bits, a, b, c, d]);
}

fn push_v6(key: &mut KeyBuf, bits: u8, address: Ipv6Addr) {
    let mut part = [0; 18];
    part[0] = tag::IPV6;
    part[1] = bits;
    part[2..].copy_from_slice(&cut_v6(address, bits).octets());
    key.push(if bits <= 64 { &part[..10] } else { &part });
}

#[cfg(test)]
mod tests;
