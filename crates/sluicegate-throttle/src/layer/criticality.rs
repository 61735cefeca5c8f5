use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Once};

use sluicegate_core::condition::Condition;
use sluicegate_core::key::{Proxies, ProxiesError, View};

use crate::class::{Class, Classes};
use crate::error::ConfigError;

/// Says how critical a request is.
///
/// A [`Class`] is one class for all; [`class_when`] goes by a condition, such as the route or a claim; [`ClassHeader`]
/// believes a header, from named peers only; [`class_fn`] asks a function of yours.
pub trait Criticality<V: View> {
    /// The class of the request of `view`.
    ///
    /// # Errors
    ///
    /// When the class cannot be read. The error holds the class to use instead.
    fn class(&self, view: &V, classes: &Classes) -> Result<Class, Unreadable<Class>>;
}

/// Something could not be read, and this is used instead. It is counted in
/// [`Snapshot::unreadable`](super::Snapshot::unreadable).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable<T>(pub T);

impl<V: View> Criticality<V> for Class {
    fn class(&self, _: &V, _: &Classes) -> Result<Class, Unreadable<Class>> {
        Ok(*self)
    }
}

/// Gives requests the class `class` if `condition` certainly holds. [`otherwise`](When::otherwise) sets the class
/// of the others. If the condition may hold, because a path can be read in several ways or a header is there twice, a
/// request is of the less critical of the two. So is one that the client has made unreadable, such as one with a path of
/// more than 8,000 bytes.
///
/// ```
/// use sluicegate::Claim;
/// use sluicegate::key::Path;
/// use sluicegate_throttle::Class;
/// use sluicegate_throttle::layer::class_when;
///
/// let class = class_when(Path.matches("/checkout/{*rest}"), Class::CRITICAL_PLUS)
///     .otherwise(class_when(Claim("plan").equals("paid"), Class::CRITICAL).otherwise(Class::SHEDDABLE_PLUS));
/// # let _ = class;
/// ```
pub fn class_when<K>(condition: K, class: Class) -> When<K, Class, Class> {
    When { condition, then: class, otherwise: Class::at(u8::MAX) }
}

/// A class or a partition by a condition: see [`class_when`] and [`partition_when`].
#[derive(Debug, Clone)]
#[must_use]
pub struct When<K, T, O> {
    condition: K,
    then: T,
    otherwise: O,
}

impl<K, T, O> When<K, T, O> {
    /// What requests get for which the condition does not hold: the lowest class or no partition by default.
    pub fn otherwise<P>(self, otherwise: P) -> When<K, T, P> {
        When { condition: self.condition, then: self.then, otherwise }
    }
}

impl<V: View, K: Condition<V>, O: Criticality<V>> Criticality<V> for When<K, Class, O> {
    fn class(&self, view: &V, classes: &Classes) -> Result<Class, Unreadable<Class>> {
        let condition = &self.condition;
        let held = condition.holds(view);
        match held.and_then(|holds| Ok((holds, holds && condition.surely_holds(view)?))) {
            Ok((_, true)) => Ok(self.then),
            Ok((false, false)) => self.otherwise.class(view, classes),
            // It may be of this class, so it is never more critical: no spelling of a path leaves a low class.
            Ok((true, false)) => match self.otherwise.class(view, classes) {
                Ok(class) => Ok(class.max(self.then)),
                Err(Unreadable(class)) => Err(Unreadable(class.max(self.then))),
            },
            Err(missing) => {
                let (Ok(class) | Err(Unreadable(class))) = self.otherwise.class(view, classes);
                // The same, or a client would leave a low class by a request that cannot be read.
                Err(Unreadable(if missing.is_client() { class.max(self.then) } else { class }))
            }
        }
    }
}

/// Reads the class from a header, but only in requests from named peers. Any other client could claim the highest
/// class.
///
/// ```
/// use sluicegate_throttle::Class;
/// use sluicegate_throttle::layer::ClassHeader;
///
/// let class = ClassHeader::new("x-criticality", Class::SHEDDABLE_PLUS).from_peers(["10.0.0.0/8"])?;
/// # let _ = class;
/// # Ok::<(), sluicegate_throttle::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ClassHeader {
    name: String,
    peers: Option<Proxies>,
    otherwise: Class,
    /// Whether the log says already that nothing is believed, by this header or a clone of it.
    warned: Arc<Once>,
}

impl ClassHeader {
    /// Reads the header `name`. Requests without it, and all requests from other peers, are of the class `otherwise`.
    /// Until [`from_peers`](Self::from_peers) names peers, the header is ignored in all requests.
    ///
    /// A request whose peer the server does not know counts as one whose class cannot be read. The log warns once of
    /// that, and where no peers are named.
    pub fn new(name: impl Into<String>, otherwise: Class) -> Self {
        let name = name.into().to_ascii_lowercase();
        Self { name, peers: None, otherwise, warned: Arc::new(Once::new()) }
    }

    /// Believes the header in requests that come directly from these addresses and networks. They have to remove the header
    /// of their own clients.
    ///
    /// # Errors
    ///
    /// When an entry is neither an address nor a network. The error names the entry.
    pub fn from_peers<P>(mut self, peers: P) -> Result<Self, ConfigError>
    where
        P: TryInto<Proxies>,
        P::Error: Into<ProxiesError>,
    {
        let peers = peers.try_into().map_err(Into::<ProxiesError>::into);
        let peers = peers.map_err(|error| ConfigError::Peers(error.to_string()))?;
        self.peers = Some(peers).filter(|peers| !peers.is_empty());
        self.warned = Arc::new(Once::new());
        Ok(self)
    }

    fn warn_once(&self, why: fmt::Arguments<'_>) {
        // All its requests are of one class, and without this nobody would know why.
        self.warned.call_once(|| {
            #[cfg(feature = "tracing")]
            tracing::warn!(
                header = self.name,
                "the class that requests state in a header is not believed: {why}"
            );
            #[cfg(not(feature = "tracing"))]
            let _ = why;
        });
    }
}

impl<V: View> Criticality<V> for ClassHeader {
    fn class(&self, view: &V, classes: &Classes) -> Result<Class, Unreadable<Class>> {
        let Some(peers) = &self.peers else {
            self.warn_once(format_args!("name the peers that may state it with `from_peers`"));
            return Ok(self.otherwise);
        };
        let Some(peer) = view.peer() else {
            self.warn_once(format_args!("the peer address is unknown; {}", view.peer_hint()));
            return Err(Unreadable(self.otherwise));
        };
        // No warning: it is what every stranger looks like.
        if !peers.contains(peer) {
            return Ok(self.otherwise);
        }
        let mut lines = view.header_lines(&self.name);
        let Some(line) = lines.next() else { return Ok(self.otherwise) };
        let name = std::str::from_utf8(line).ok().map(str::trim);
        let class = name.and_then(|name| classes.class(name)).filter(|_| lines.next().is_none());
        class.ok_or(Unreadable(self.otherwise))
    }
}

/// The class that `class` makes of the framework's own request.
///
/// ```
/// use http::Request;
/// use sluicegate_throttle::Class;
/// use sluicegate_throttle::layer::class_fn;
///
/// let class = class_fn(|request: &Request<String>| match request.method().as_str() {
///     "POST" => Class::CRITICAL,
///     _ => Class::SHEDDABLE_PLUS,
/// });
/// # let _ = class;
/// ```
pub fn class_fn<F, R>(class: F) -> ClassFn<F, R>
where
    F: Fn(&R) -> Class,
{
    ClassFn { class, request: PhantomData }
}

/// A class by a function: see [`class_fn`].
pub struct ClassFn<F, R> {
    class: F,
    request: PhantomData<fn(&R)>,
}

impl<V: View, F: Fn(&V::Request) -> Class> Criticality<V> for ClassFn<F, V::Request> {
    fn class(&self, view: &V, _: &Classes) -> Result<Class, Unreadable<Class>> {
        Ok((self.class)(view.request()))
    }
}

impl<F: Clone, R> Clone for ClassFn<F, R> {
    fn clone(&self) -> Self {
        Self { class: self.class.clone(), request: PhantomData }
    }
}

impl<F, R> fmt::Debug for ClassFn<F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClassFn")
    }
}

/// A part of the work in flight. [`Throttle::partition`](super::Throttle::partition) returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition(pub(super) u8);

/// Says which partition a request belongs to: [`partition_when`] goes by conditions.
pub trait PartitionBy<V: View> {
    /// The partition of the request of `view`; `None` for no partition, which is guaranteed nothing.
    fn partition(&self, view: &V) -> Option<Partition>;
}

/// No partitions.
impl<V: View> PartitionBy<V> for () {
    fn partition(&self, _: &V) -> Option<Partition> {
        None
    }
}

impl<V: View> PartitionBy<V> for Partition {
    fn partition(&self, _: &V) -> Option<Partition> {
        Some(*self)
    }
}

/// Puts requests into `partition` if `condition` certainly holds. [`otherwise`](When::otherwise) sets the
/// partition of the others.
///
/// ```
/// use std::time::Duration;
/// use sluicegate::key::Path;
/// use sluicegate_throttle::Throttle;
/// use sluicegate_throttle::layer::partition_when;
///
/// // Checkout always gets 30 of the 100 places, and search 50. Idle places are lent to all.
/// let throttle = Throttle::builder()
///     .in_flight(100)
///     .partition("checkout", 0.3)
///     .partition("search", 0.5)
///     .queue(Duration::from_millis(200))
///     .build()?;
/// let (checkout, search) = (throttle.partition("checkout")?, throttle.partition("search")?);
/// let layer = throttle.layer().partition_by(
///     partition_when(Path.matches("/checkout/{*rest}"), checkout)
///         .otherwise(partition_when(Path.matches("/search"), search)),
/// );
/// # let _ = layer;
/// # Ok::<(), sluicegate_throttle::ConfigError>(())
/// ```
pub fn partition_when<K>(condition: K, partition: Partition) -> When<K, Partition, ()> {
    When { condition, then: partition, otherwise: () }
}

impl<V: View, K: Condition<V>, O: PartitionBy<V>> PartitionBy<V> for When<K, Partition, O> {
    fn partition(&self, view: &V) -> Option<Partition> {
        let holds = self.condition.surely_holds(view).unwrap_or(false);
        if holds { Some(self.then) } else { self.otherwise.partition(view) }
    }
}
