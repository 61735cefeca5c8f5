//! The file of shared capacity, read again while the service runs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use sluicegate_config::document::Document;
use sluicegate_config::{
    Environment, Event, Format, Live, PolicyError, PolicyFile, SourceLocation,
};

use super::Capacities;

/// The capacities in force.
#[derive(Clone)]
pub(crate) struct LiveCapacities {
    live: Live,
    in_force: Arc<ArcSwap<Capacities>>,
}

impl LiveCapacities {
    pub(crate) fn open(path: &Path) -> Result<Self, PolicyError> {
        let read: Arc<Mutex<Option<Capacities>>> = Arc::default();
        let take = |read: &Mutex<Option<Capacities>>| {
            read.lock().unwrap_or_else(PoisonError::into_inner).take()
        };
        let into = Arc::clone(&read);
        let reader = move |text: &str| {
            let capacities = Capacities::read(text)?;
            let mut document = Document::default();
            document.others = in_words(&capacities);
            *into.lock().unwrap_or_else(PoisonError::into_inner) = Some(capacities);
            document.source.mark("rules", SourceLocation { line: 1, column: 1 });
            Ok((document, Vec::new()))
        };
        let format = Format::new(reader, "there is no capacity");
        let live = Live::open(PolicyFile::new(path).format(format), Environment::new())?;
        let first = take(&read).expect("a file that is open was read");
        let in_force = Arc::new(ArcSwap::from_pointee(first));
        let shared = Arc::downgrade(&in_force);
        live.on_event(move |event| {
            let (Event::Reloaded(_), Some(shared)) = (event, shared.upgrade()) else { return };
            if let Some(capacities) = take(&read) {
                shared.store(Arc::new(capacities));
            }
        });
        Ok(Self { live, in_force })
    }

    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    /// The capacities in force. Another value after each reload.
    pub(crate) fn in_force(&self) -> Arc<Capacities> {
        self.in_force.load_full()
    }
}

/// Each capacity by its name, with its draws and its clients.
fn in_words(capacities: &Capacities) -> BTreeMap<String, String> {
    capacities.iter().map(|capacity| (capacity.name.to_string(), capacity.terms())).collect()
}

impl fmt::Debug for LiveCapacities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.in_force().iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_tells_which_capacities_changed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("capacity.toml");
        let write = |names: [&str; 2], limit: &str| {
            let each = names.map(|name| {
                format!(
                    "[[capacity]]\nname = \"{name}\"\nlimit = \"{limit}\"\nlease = \"10 seconds\"\n"
                )
            });
            std::fs::write(&path, each.concat()).expect("a file");
        };
        write(["db", "mail"], "200/second");
        let live = LiveCapacities::open(&path).expect("a file of capacity").live;
        let changes = |names, limit| {
            write(names, limit);
            live.reload().expect("a file of capacity").to_string()
        };
        assert_eq!(changes(["db", "mail"], "200/second"), "nothing changed");
        let changed = changes(["db", "web"], "300/second");
        let [web, db, mail] = ["added web: 300 a second", "db: 200 a second", "removed mail"];
        assert!([web, db, mail].iter().all(|part| changed.contains(part)), "{changed}");
        assert!(changed.contains("-> 300 a second"), "{changed}");
    }
}
