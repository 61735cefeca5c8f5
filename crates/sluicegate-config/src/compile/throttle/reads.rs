use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use sluicegate_core::condition::Condition as CoreCondition;
use sluicegate_core::key::{Key as CoreKey, KeyBuf, Missing, View};
use sluicegate_throttle::layer::{
    Criticality, Deadline as CoreDeadline, Partition, PartitionBy, Unreadable,
};
use sluicegate_throttle::{Class, Classes};

use super::requests::{Deadline, NOT_STATED, Requests};

/// What a throttle reads from requests, as the file in force says it: its class, its keys, its deadline, its partition,
/// and whether it is exempt.
#[derive(Clone)]
pub struct FileRequests {
    in_force: Arc<ArcSwap<Requests>>,
    role: Role,
    partitions: Arc<[Partition]>,
}

/// Which of two keys it is.
#[derive(Debug, Clone, Copy)]
enum Role {
    Predict,
    Fair,
}

impl FileRequests {
    pub(crate) fn new(in_force: &Arc<ArcSwap<Requests>>, partitions: Arc<[Partition]>) -> Self {
        Self { in_force: Arc::clone(in_force), role: Role::Predict, partitions }
    }

    /// The same, as the key of flows.
    pub(crate) fn fair(&self) -> Self {
        Self { role: Role::Fair, ..self.clone() }
    }
}

impl<V: View> Criticality<V> for FileRequests {
    fn class(&self, view: &V, classes: &Classes) -> Result<Class, Unreadable<Class>> {
        let requests = self.in_force.load();
        let stated = requests.class_header.as_ref().map(|header| header.class(view, classes));
        let mut is_read = !matches!(stated, Some(Err(_)));
        if let Some(Ok(class)) = stated.filter(|class| *class != Ok(NOT_STATED)) {
            return Ok(class);
        }
        let mut class = requests.default_class;
        for (when, then) in &requests.classes {
            match when.surely_holds(view) {
                Ok(true) => {
                    class = *then;
                    break;
                }
                Ok(false) => {}
                Err(_) => is_read = false,
            }
        }
        if is_read { Ok(class) } else { Err(Unreadable(class)) }
    }
}

impl<V: View> CoreKey<V> for FileRequests {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let requests = self.in_force.load();
        match self.role {
            Role::Predict => requests.predict_by.write(view, key),
            Role::Fair => requests.fair_by.write(view, key),
        }
    }
}

impl<V: View> CoreDeadline<V> for FileRequests {
    fn timeout(&self, view: &V) -> Result<Option<Duration>, Unreadable<Option<Duration>>> {
        match &self.in_force.load().deadline {
            Deadline::Never => Ok(None),
            Deadline::Always(time) => Ok(Some(*time)),
            Deadline::Header(header) => header.timeout(view),
            Deadline::Grpc(grpc) => grpc.timeout(view),
        }
    }
}

/// Whether it is exempt.
impl<V: View> CoreCondition<V> for FileRequests {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        self.in_force.load().exempt.as_ref().map_or(Ok(false), |exempt| exempt.holds(view))
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        self.in_force.load().exempt.as_ref().map_or(Ok(false), |exempt| exempt.surely_holds(view))
    }
}

impl<V: View> PartitionBy<V> for FileRequests {
    fn partition(&self, view: &V) -> Option<Partition> {
        let requests = self.in_force.load();
        let mut conditions = requests.partitions.iter();
        let at = conditions.position(|when| when.surely_holds(view).unwrap_or(false))?;
        self.partitions.get(at).copied()
    }
}

impl fmt::Debug for FileRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileRequests").field(&self.in_force.load()).finish()
    }
}
