//! Stand-ins for what a feature adds, while the feature is off.
//!
//! Nothing makes a value of them, so the rest of the crate is the same with and without the feature.

#[cfg(feature = "cpu")]
pub(crate) use sluicegate_core::condition::Cpu;
#[cfg(feature = "geoip")]
pub(crate) use sluicegate_core::condition::{GeoDatabase, GeoIn, GeoKey};
#[cfg(feature = "hours")]
pub(crate) use sluicegate_core::condition::{Hours, Weekday};

#[cfg(not(feature = "cpu"))]
pub(crate) use self::nothing::Nothing as Cpu;
#[cfg(not(feature = "geoip"))]
pub(crate) use self::nothing::{Nothing as GeoDatabase, Nothing as GeoIn, Nothing as GeoKey};
#[cfg(not(feature = "hours"))]
pub(crate) use self::nothing::{Nothing as Hours, Weekday};

/// Says that a file needs a feature that is off.
#[cfg_attr(
    all(
        feature = "cpu",
        feature = "geoip",
        feature = "hours",
        feature = "json",
        feature = "throttle",
        feature = "toml"
    ),
    expect(dead_code, reason = "nothing is absent")
)]
pub(crate) fn needs(feature: &str) -> String {
    format!("this needs the feature `{feature}` of sluicegate-config, which is off in this build")
}

#[cfg(not(all(feature = "cpu", feature = "geoip", feature = "hours")))]
#[cfg_attr(
    any(feature = "cpu", feature = "geoip", feature = "hours"),
    expect(dead_code, reason = "it has the functions of all three")
)]
mod nothing {
    use sluicegate_core::Ip;
    use sluicegate_core::clock::Clock;
    use sluicegate_core::condition::Condition;
    use sluicegate_core::key::{Key, KeyBuf, Missing, View};

    /// Whatever a feature adds, without the feature. Nobody makes one. It is no empty enum, because the compiler would
    /// warn of all code that comes after it.
    #[derive(Debug, Clone)]
    pub(crate) struct Nothing(());

    #[derive(Debug, Clone, Copy)]
    pub(crate) enum Weekday {
        Monday,
        Tuesday,
        Wednesday,
        Thursday,
        Friday,
        Saturday,
        Sunday,
    }

    /// As [`Cpu`](sluicegate_core::condition::Cpu).
    impl Nothing {
        pub(crate) fn below(_: f64) -> Result<Self, String> {
            Err(super::needs("cpu"))
        }
    }

    /// As `GeoDatabase` and its keys.
    impl Nothing {
        pub(crate) fn open(_: &str) -> Result<Self, String> {
            Err(super::needs("geoip"))
        }

        pub(crate) fn country(&self, _: Ip) -> Self {
            self.clone()
        }

        pub(crate) fn region(&self, _: Ip) -> Self {
            self.clone()
        }

        #[expect(clippy::wrong_self_convention, reason = "so it is with the feature")]
        pub(crate) fn is_in<C: AsRef<str>>(
            self,
            _: impl IntoIterator<Item = C>,
        ) -> Result<Self, String> {
            Ok(self)
        }
    }

    /// As `Hours`.
    impl Nothing {
        pub(crate) fn in_zone(_: &str) -> Result<Self, String> {
            Err(super::needs("hours"))
        }

        pub(crate) fn between(self, _: &str, _: &str) -> Result<Self, String> {
            Ok(self)
        }

        pub(crate) fn on(self, _: impl IntoIterator<Item = Weekday>) -> Self {
            self
        }

        pub(crate) fn clock(self, _: Clock) -> Self {
            self
        }
    }

    impl<V: View> Condition<V> for Nothing {
        fn holds(&self, _: &V) -> Result<bool, Missing> {
            Ok(false)
        }
    }

    impl<V: View> Key<V> for Nothing {
        fn write(&self, _: &V, _: &mut KeyBuf) -> Result<(), Missing> {
            Ok(())
        }
    }
}
