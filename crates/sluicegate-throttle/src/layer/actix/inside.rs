use crate::layer::settings::Settings;

/// What requests under way need: the service, which is called by those that wait when they have waited, and the
/// settings.
pub(super) struct Inside<I, R> {
    pub(super) service: I,
    pub(super) settings: Settings<R>,
}
