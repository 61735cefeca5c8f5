use sluicegate_core::Ip;
use sluicegate_core::condition::Condition;
use sluicegate_core::key::{Key, KeyBuf, Missing, View};

#[derive(Debug, Clone)]
pub(crate) struct GeoDatabase(());

#[derive(Debug, Clone)]
pub(crate) struct GeoKey(());

#[derive(Debug, Clone)]
pub(crate) struct GeoIn(());

impl GeoDatabase {
    pub(crate) fn open(_: &str) -> Result<Self, String> {
        Err(super::needs("geoip"))
    }

    pub(crate) fn country(&self, _: Ip) -> GeoKey {
        GeoKey(())
    }

    pub(crate) fn region(&self, _: Ip) -> GeoKey {
        GeoKey(())
    }
}

impl GeoKey {
    #[expect(clippy::wrong_self_convention, reason = "so it is with the feature")]
    pub(crate) fn is_in<C: AsRef<str>>(
        self,
        _: impl IntoIterator<Item = C>,
    ) -> Result<GeoIn, String> {
        Err(super::needs("geoip"))
    }
}

impl<V: View> Key<V> for GeoKey {
    fn write(&self, _: &V, _: &mut KeyBuf) -> Result<(), Missing> {
        Ok(())
    }
}

impl<V: View> Condition<V> for GeoIn {
    fn holds(&self, _: &V) -> Result<bool, Missing> {
        Ok(false)
    }
}
