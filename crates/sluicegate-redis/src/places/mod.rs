//! The places of concurrency limits that this process holds, and how the server learns that it is alive.
//!
//! In the server, each holder has an entry in the row, which expires unless it is renewed. So the places of a process
//! that has died are free when its lease ends. This process counts how many places it holds in each row, including
//! those of calls without an answer yet. While that is more than none, one task renews the rows.
//!
//! The local count is never lower than the server's rightful count. So if the server counts more in a row from which
//! nothing was taken since, the renewal lowers its count: the difference was taken or given back in a message that was
//! lost.

mod claim;
mod ledger;

pub(crate) use self::claim::Claim;
pub(crate) use self::ledger::{Due, Places};

#[cfg(test)]
mod tests;
