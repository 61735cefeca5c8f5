//! Checks a file of capacity.

use std::path::Path;

use sluicegate_server::capacity::Capacities;

use super::{Invalid, report, say, text};

pub(super) fn check(path: &Path) -> Result<(), Invalid> {
    let shown = path.display();
    let text = text(path)?;
    let capacities =
        Capacities::read(&text).map_err(|problems| report(problems.in_file(shown.to_string())))?;
    say(format_args!("{shown}:"))?;
    for capacity in capacities.iter() {
        say(format_args!("  {capacity}"))?;
        for draw in &capacity.draws {
            say(format_args!("    {draw}"))?;
        }
        for client in &capacity.clients {
            say(format_args!("    {client}"))?;
        }
    }
    Ok(())
}
