//! Tests against what users run. `cargo xtask counterparts` installs what they need and runs them.
