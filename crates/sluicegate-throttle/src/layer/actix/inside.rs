use crate::layer::settings::Settings;

/// What running and waiting requests need: the settings, and the service, which a queued request calls after its wait.
pub(super) struct Inside<I, R> {
    pub(super) service: I,
    pub(super) settings: Settings<R>,
}
