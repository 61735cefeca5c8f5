use sluicegate_core::condition::Condition;
use sluicegate_core::key::{Missing, View};

#[derive(Debug, Clone)]
pub(crate) struct Cpu(());

impl Cpu {
    pub(crate) fn below(_: f64) -> Result<Self, String> {
        Err(super::needs("cpu"))
    }
}

impl<V: View> Condition<V> for Cpu {
    fn holds(&self, _: &V) -> Result<bool, Missing> {
        Ok(false)
    }
}
