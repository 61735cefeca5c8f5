//! The places of concurrency limits that this process holds, and how the server learns that it is alive.
//!
//! In the server, each holder has an entry in the row, which expires unless it is renewed. So the places of a process
//! that has died are free when its lease ends. This process counts how many places it holds in each row, including
//! those of calls without an answer yet. While that is more than none, one task renews the rows.
//!
//! The local count is never lower than the server's rightful count. So if the server counts more in a row from which
//! nothing was taken since, the renewal lowers its count: the difference was taken or given back in a message that was
//! lost.
//!
//! The row of a `Limit::concurrent` ends with an entry of 48 bytes for each process that holds places: the
//! random number of the process, the number of places, the turns of its first and its newest charge, when
//! the entry expires, and the lease. Every script that reads the row passes over expired entries by the
//! server's clock, and the next write drops them. The entry of a process is alive for that process as long
//! as it exists, because then nobody has taken its places. The receipt of a charge holds the turn in which
//! its entry began, so a place that is given back after the entry was lost finds another entry or none, and
//! takes nothing from other processes. Reading a row takes about half a microsecond longer for each process that
//! holds places in it.

mod claim;
mod ledger;

pub(crate) use self::claim::Claim;
pub(crate) use self::ledger::{Due, Places};

#[cfg(test)]
mod tests;
