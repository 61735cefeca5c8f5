use super::{ChosenBy, Condition};
use crate::key::network::NetworkError;
use crate::key::{Ip, Missing, Network, View};

impl Ip {
    /// Holds for clients with an address in one of these networks: `10.0.0.0/8`, or a single address. `0.0.0.0/0` is
    /// all of IPv4, `::/0` all of IPv6.
    ///
    /// The whole address counts, whatever prefix of it the key uses. If the server does not know the peer's address,
    /// the answer is an error.
    ///
    /// ```
    /// use sluicegate::{Ip, Limit};
    /// use sluicegate::condition::Not;
    ///
    /// let office = Ip::behind(["10.0.0.0/8"]).within(["192.0.2.0/24", "2001:db8::/48"])?;
    /// let rule = Limit::per_minute(10).by(Ip::behind(["10.0.0.0/8"])).when(Not(office));
    /// # Ok::<(), sluicegate::condition::NetworkError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Names the entry that is neither an address nor a network.
    pub fn within<S: AsRef<str>>(
        self,
        networks: impl IntoIterator<Item = S>,
    ) -> Result<Within, NetworkError> {
        let networks = networks.into_iter().map(|entry| parse(entry.as_ref().trim()));
        Ok(Within { ip: self, networks: networks.collect::<Result<_, _>>()? })
    }
}

fn parse(entry: &str) -> Result<Network, NetworkError> {
    Network::parse_any(entry).map_err(|problem| NetworkError::new(entry, problem))
}

/// Holds for clients in some networks; see [`Ip::within`].
#[derive(Debug, Clone)]
pub struct Within {
    ip: Ip,
    networks: Vec<Network>,
}

impl<V: View> Condition<V> for Within {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        let address = self.ip.address(view)?;
        Ok(self.networks.iter().any(|network| network.contains(address)))
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}
