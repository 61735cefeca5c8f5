/// Until when a served request holds its places of [`Limit::concurrent`](crate::Limit::concurrent), and
/// when an answer whose cost is running is settled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hold {
    /// Until the response's body has ended, failed or been dropped, or the upgraded connection has
    /// closed. The default.
    #[default]
    End,
    /// Until the head of the response is there: a body that is sent afterwards, or an upgraded
    /// connection, holds nothing, and a cost that is running is settled by what it is then.
    Head,
}
