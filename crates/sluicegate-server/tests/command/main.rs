//! The command `sluicegate`, run as a program, and its dashboard.

mod command;
mod dashboard;
mod manual;
mod process;
mod proxying;
mod service;
