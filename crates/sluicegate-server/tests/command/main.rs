//! The command `sluicegate`, run as a program, and its dashboard.
//!
//! Apart from the program `server`, because it needs the feature `command`, and because a test of the dashboard installs
//! the recorder of metrics. There is one for each process, and it would count what the tests of the server do.

mod cases;
mod command;
mod dashboard;
mod manual;
mod process;
mod proxying;
mod replaying;
mod service;
mod suggesting;
