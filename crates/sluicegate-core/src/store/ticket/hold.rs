/// When a served request gives its places of [`Limit::concurrent`](crate::Limit::concurrent) back, and when a running
/// cost is settled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hold {
    /// When the response's body has ended, failed or been dropped, or the upgraded connection has closed. The
    /// default.
    #[default]
    End,
    /// When the head of the response is there. A body that is sent afterwards, or an upgraded connection, holds
    /// nothing, and a running cost is settled with its value at that time.
    Head,
}
