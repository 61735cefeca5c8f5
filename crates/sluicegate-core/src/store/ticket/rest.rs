/// What waits for the end of a response's body, once its head has been [settled](crate::adapter::Paid::close).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Nothing does.
    Nothing,
    /// A place is held.
    Place,
    /// A charge is settled then, perhaps beside a place: by what the response says.
    Account,
}

impl Rest {
    pub(crate) const fn of(account_waits: bool) -> Self {
        if account_waits { Self::Account } else { Self::Place }
    }
}
