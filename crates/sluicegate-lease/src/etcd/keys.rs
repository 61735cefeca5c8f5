use crate::pool::{Change, Known};

/// The keys of one mastership in etcd. The name has no slash, so no two names share keys.
#[derive(Debug)]
pub(super) struct Keys {
    /// Is there while there is a master. Its value is the master's address.
    pub(super) master: Vec<u8>,
    /// The fence of the last master, as a decimal number.
    pub(super) fence: Vec<u8>,
    /// Is there as long as clients may hold leases that the list of clients lacks.
    pub(super) learning: Vec<u8>,
    /// What the keys of clients begin with.
    pub(super) clients: Vec<u8>,
}

impl Keys {
    pub(super) fn new(name: &str) -> Self {
        let key = |what: &str| format!("sluicegate/{name}/{what}").into_bytes();
        Self {
            master: key("master"),
            fence: key("fence"),
            learning: key("learning"),
            clients: key("clients/"),
        }
    }

    /// The first key after those of all clients.
    pub(super) fn end_of_clients(&self) -> Vec<u8> {
        let mut end = self.clients.clone();
        // From `/` to the next character.
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        end
    }

    /// The key of a client, and whether the client has come.
    pub(super) fn of(&self, change: &Change) -> (Vec<u8>, bool) {
        let (resource, client, has_joined) = match change {
            Change::Joined { resource, client } => (resource, client, true),
            Change::Left { resource, client } => (resource, client, false),
        };
        let names = format!("{}/{resource}/{client}", resource.len());
        ([&self.clients, names.as_bytes()].concat(), has_joined)
    }

    /// The client with this key.
    pub(super) fn read(&self, key: &[u8]) -> Option<Known> {
        let names = std::str::from_utf8(key.strip_prefix(&*self.clients)?).ok()?;
        let (length, names) = names.split_once('/')?;
        let (resource, client) = names.split_at_checked(length.parse().ok()?)?;
        Some(Known { resource: resource.into(), client: client.strip_prefix('/')?.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_read_as_it_was_written() {
        let keys = Keys::new("quota");
        for (resource, client) in [("db", "a"), ("", ""), ("a/b", "c/1/d"), ("ü\0", "\u{1f600}")] {
            let (key, _) =
                keys.of(&Change::Joined { resource: resource.into(), client: client.into() });
            assert!(keys.clients < key && key < keys.end_of_clients());
            let known = keys.read(&key).expect("a client");
            assert_eq!((&*known.resource, &*known.client), (resource, client));
        }
    }

    #[test]
    fn a_key_that_is_not_that_of_a_client_is_left_out() {
        let keys = Keys::new("quota");
        for text in
            ["", "2", "2/db", "9/db/a", "1/ü/a", "-1/db/a", "x/db/a", "99999999999999999999/"]
        {
            assert_eq!(keys.read(format!("sluicegate/quota/clients/{text}").as_bytes()), None);
        }
        assert_eq!(keys.read(b"sluicegate/quota/clients/1/\xff/a"), None);
        assert_eq!(keys.read(b"sluicegate/other/clients/2/db/a"), None);
    }
}
