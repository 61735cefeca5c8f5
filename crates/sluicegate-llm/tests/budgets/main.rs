//! Budgets of tokens: an estimate is reserved, and what was used is charged in the end.

mod actix;
mod dialect;
mod estimates;
mod hostile;
mod model;
mod settling;
