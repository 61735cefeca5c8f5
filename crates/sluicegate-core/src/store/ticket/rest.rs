/// What waits for the end of a response's body, after its head was [settled](crate::adapter::Paid::close).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rest {
    /// Nothing.
    Nothing,
    /// A held place.
    Place,
    /// A charge that is settled then, by the response, perhaps with a held place.
    Account,
}

impl Rest {
    pub(crate) const fn of(account_waits: bool) -> Self {
        if account_waits { Self::Account } else { Self::Place }
    }
}
