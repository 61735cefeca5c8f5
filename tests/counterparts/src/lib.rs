//! Tests against programs that users run. `cargo xtask counterparts` installs the programs and runs the tests.
