//! The tests of this crate that need nothing but what it shows to others. The model and the simulation are compiled
//! into the crate's own tests, since they also look at what is private.

mod generated;
mod network;
