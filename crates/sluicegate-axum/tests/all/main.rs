//! The layer of axum. What it has in common with the other adapters is in the parity suite in `tests/`.

mod held;
mod layer;
mod nested;
