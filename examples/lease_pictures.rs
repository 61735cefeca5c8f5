//! Draws the picture of the guide's page on leased capacity: three levels of servers, and what a client uses without one.
//!
//! The numbers are those of real servers and clients, which talk to each other without a network and in simulated time.
//!
//!     cargo run --example lease_pictures

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs;
use std::time::Duration;

use sluicegate_lease::client::{Action, OnLoss, Session};
use sluicegate_lease::pool::Answer;
use sluicegate_lease::{Amount, ConfigError, Server, Template, Templates};

const PICTURE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/sluicegate/src/guide/leases.svg");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    fs::write(PICTURE, draw(&divided()?, &lost()?)?)?;
    println!("the picture shows a tree of servers and three clients that lose theirs");
    Ok(())
}

/// A server or a client of the tree: its name, its parent, and what a client wants.
const TREE: [(&str, &str, Option<u64>); 12] = [
    ("root", "", None),
    ("europe", "root", None),
    ("asia", "root", None),
    ("berlin", "europe", None),
    ("paris", "europe", None),
    ("tokyo", "asia", None),
    ("b1", "berlin", Some(100)),
    ("b2", "berlin", Some(800)),
    ("p1", "paris", Some(150)),
    ("p2", "paris", Some(600)),
    ("t1", "tokyo", Some(50)),
    ("t2", "tokyo", Some(900)),
];
/// Of the root.
const CAPACITY: u64 = 1_000;

/// What each server and client of the tree holds after a minute.
fn divided() -> Result<BTreeMap<&'static str, Amount>, ConfigError> {
    let mut servers = BTreeMap::new();
    let mut clients = BTreeMap::new();
    for (name, parent, wants) in TREE {
        let templates = |template: Template| {
            Templates::new([template
                .refresh(Duration::from_secs(1))
                .lease(Duration::from_secs(30))])
        };
        match wants {
            Some(wants) => {
                let mut session = Session::new(name, 0, 7);
                session.add("db", Amount::units(wants), OnLoss::Stop);
                clients.insert(name, session);
            }
            None if parent.is_empty() => {
                let template = Template::new("*", Amount::units(CAPACITY));
                servers.insert(name, Server::root(name, templates(template)?));
            }
            None => {
                servers.insert(name, Server::child(name, templates(Template::from_parent("*"))?));
            }
        }
    }
    servers.values_mut().for_each(|server| server.lead(0, 1, Some(Vec::new()), 7));
    let mut held = BTreeMap::from([("root", Amount::units(CAPACITY))]);
    for now in (0..60_000).step_by(50) {
        // Clients first, then those that they ask.
        for (name, parent, _) in TREE.into_iter().rev().filter(|(_, parent, _)| !parent.is_empty())
        {
            let action = match clients.get_mut(name) {
                Some(client) => client.poll(now),
                None => servers.get_mut(name).expect("a server").poll(now),
            };
            let Action::Ask(request) = action else { continue };
            let answer = servers.get_mut(parent).expect("a server").answer(now, &request);
            let response = answer.expect("it is the master");
            match clients.get_mut(name) {
                Some(client) => client.answered(now, &response),
                None => servers.get_mut(name).expect("a server").answered(now, &response),
            }
            if let Some(Ok(Answer::Grant(grant))) = response.answers.first() {
                held.insert(name, grant.capacity);
            }
        }
        servers.get_mut("root").expect("the root").poll(now);
    }
    Ok(held)
}

const MODES: [(OnLoss, &str, &str); 3] = [
    (OnLoss::Keep, "Keep", "#d9822b"),
    (OnLoss::Safe, "Safe", "#3b82f6"),
    (OnLoss::Stop, "Stop", "#e5534b"),
];
/// Seconds that are shown, and in which the server cannot be reached.
const SHOWN: u64 = 150;
const GONE: std::ops::Range<u64> = 30..90;
/// What the clients want, and the safe capacity.
const WANTED: u64 = 60;
const SAFE: u64 = 20;

/// What a client of each mode may use, second by second, while its server is away for a minute.
fn lost() -> Result<Vec<Vec<f64>>, ConfigError> {
    MODES.into_iter().map(|(on_loss, ..)| lost_with(on_loss)).collect()
}

fn lost_with(on_loss: OnLoss) -> Result<Vec<f64>, ConfigError> {
    let template = Template::new("*", Amount::units(CAPACITY)).safe(Amount::units(SAFE));
    let template = template.lease(Duration::from_secs(20)).refresh(Duration::from_secs(5));
    let mut server = Server::root("root", Templates::new([template])?);
    server.lead(0, 1, Some(Vec::new()), 7);
    let mut session = Session::new("one", 0, 7);
    session.add("db", Amount::units(WANTED), on_loss);
    let second = |second: u64| {
        for now in (second * 1_000..(second + 1) * 1_000).step_by(50) {
            server.poll(now);
            let Action::Ask(request) = session.poll(now) else { continue };
            match server.answer(now, &request) {
                Ok(response) if !GONE.contains(&second) => session.answered(now, &response),
                _ => session.failed(now),
            }
        }
        session.capacity((second + 1) * 1_000 - 1, "db").as_f64()
    };
    Ok((0..SHOWN).map(second).collect())
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 330.0;

/// Greys and hues of middle lightness, which can be read on white and on black.
const STYLE: &str = "\
text{font:13px -apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#7a7f87}\
.name{font-size:15px;font-weight:600}.end{text-anchor:end}.mid{text-anchor:middle}\
path,rect{fill:none;stroke:#7a7f87;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\
rect{rx:6px}.client{stroke:#3b82f6}.link{stroke-opacity:.5;stroke-width:1}\
.grid{stroke-opacity:.35;stroke-dasharray:2 3;stroke-width:1}.gone{fill:#7a7f87;fill-opacity:.15;stroke:none}";

fn draw(held: &BTreeMap<&str, Amount>, lost: &[Vec<f64>]) -> Result<String, fmt::Error> {
    let mut svg = String::new();
    write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" role=\"img\" aria-labelledby=\"title summary\">\n\
         <title id=\"title\">Leased capacity</title>\n<desc id=\"summary\">Three levels of servers divide {CAPACITY}:"
    )?;
    for (name, _, wants) in TREE {
        let wanted = wants.map_or(String::new(), |wants| format!(" wants {wants} and"));
        write!(svg, " {name}{wanted} holds {:.0}.", units(held, name))?;
    }
    writeln!(
        svg,
        " A client that wants {WANTED} and loses its server uses its lease until that ends; then as much as before, \
         {SAFE}, or nothing.</desc>\n<style>{STYLE}</style>"
    )?;
    tree(&mut svg, held)?;
    modes(&mut svg, lost)?;
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn units(held: &BTreeMap<&str, Amount>, name: &str) -> f64 {
    held.get(name).map_or(0.0, |amount| amount.as_f64())
}

/// Where a server or a client is drawn: its middle, and its level.
fn place(name: &str) -> (f64, usize) {
    let level = |name: &str| {
        let mut parents = 0;
        let mut at = name;
        while let Some((_, parent, _)) = TREE.iter().find(|(of, ..)| *of == at) {
            parents += usize::from(!parent.is_empty());
            at = parent;
        }
        parents
    };
    let clients: Vec<_> = TREE.iter().filter(|(.., wants)| wants.is_some()).collect();
    if let Some(at) = clients.iter().position(|(client, ..)| *client == name) {
        return (40.0 + 75.0 * at as f64, 3);
    }
    // In the middle above its own.
    let own: Vec<f64> = TREE
        .iter()
        .filter(|(_, parent, _)| *parent == name)
        .map(|(child, ..)| place(child).0)
        .collect();
    (own.iter().sum::<f64>() / own.len() as f64, level(name))
}

fn tree(svg: &mut String, held: &BTreeMap<&str, Amount>) -> fmt::Result {
    writeln!(
        svg,
        "<text x=\"8\" y=\"24\" class=\"name\">Three levels: root, region, cluster</text>"
    )?;
    let top = |level: usize| 44.0 + 68.0 * level as f64;
    for (name, parent, wants) in TREE {
        let (x, level) = place(name);
        let y = top(level);
        if !parent.is_empty() {
            let (above, parent_level) = place(parent);
            let bottom = top(parent_level) + 40.0;
            writeln!(svg, "<path class=\"link\" d=\"M{above:.1} {bottom}L{x:.1} {y}\"/>")?;
        }
        let class = if wants.is_some() { " class=\"client\"" } else { "" };
        writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{y}\" width=\"64\" height=\"40\"{class}/>\
             <text x=\"{x:.1}\" y=\"{}\" class=\"mid\">{name}</text>\
             <text x=\"{x:.1}\" y=\"{}\" class=\"mid\">{:.0}</text>",
            x - 32.0,
            y + 16.0,
            y + 33.0,
            units(held, name)
        )?;
        if let Some(wants) = wants {
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{}\" class=\"mid\">of {wants}</text>", y + 57.0)?;
        }
    }
    Ok(())
}

fn modes(svg: &mut String, lost: &[Vec<f64>]) -> fmt::Result {
    let (left, width, top, height) = (520.0, 360.0, 56.0, 200.0);
    let x = |second: f64| left + second / SHOWN as f64 * width;
    let y = |units: f64| top + (1.0 - units / (WANTED as f64 * 1.1)) * height;
    writeln!(
        svg,
        "<text x=\"{left}\" y=\"24\" class=\"name\">Three modes of a client without its server</text>\
         <rect class=\"gone\" x=\"{:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"{height}\"/>\
         <text x=\"{:.1}\" y=\"{}\" class=\"mid\">the server is away</text>",
        x(GONE.start as f64),
        x(GONE.end as f64) - x(GONE.start as f64),
        x((GONE.start + GONE.end) as f64 / 2.0),
        top - 6.0
    )?;
    for units in [0, SAFE, WANTED] {
        let line = y(units as f64);
        writeln!(
            svg,
            "<path class=\"grid\" d=\"M{left} {line:.1}h{width}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{units}</text>",
            left - 8.0,
            line + 4.0
        )?;
    }
    for second in (0..=SHOWN).step_by(30) {
        let below = top + height + 18.0;
        writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{below}\" class=\"mid\">{second} s</text>",
            x(second as f64)
        )?;
    }
    for (at, ((_, name, colour), capacities)) in MODES.iter().zip(lost).enumerate() {
        let mut way = String::new();
        for (second, capacity) in capacities.iter().enumerate() {
            let letter = if way.is_empty() { 'M' } else { 'V' };
            // A little apart, so that each can be seen where they use the same.
            let line = y(*capacity) - 3.0 * (at as f64 - 1.0);
            match letter {
                'M' => write!(way, "M{:.1} {line:.1}", x(0.0))?,
                _ => write!(way, "V{line:.1}")?,
            }
            write!(way, "H{:.1}", x(second as f64 + 1.0))?;
        }
        let (legend, below) = (left + 120.0 * at as f64 + 20.0, top + height + 44.0);
        writeln!(
            svg,
            "<path d=\"{way}\" style=\"stroke:{colour}\"/>\
             <text x=\"{legend}\" y=\"{below}\" style=\"fill:{colour}\">OnLoss::{name}</text>"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_of_leases_is_what_the_code_draws() {
        let drawn = draw(&divided().unwrap(), &lost().unwrap()).unwrap();
        let picture = fs::read_to_string(PICTURE).unwrap();
        assert!(picture == drawn, "run `cargo run --example lease_pictures`");
    }

    #[test]
    fn the_picture_shows_fair_shares_of_everything() {
        let held = divided().unwrap();
        let clients = TREE.iter().filter(|(.., wants)| wants.is_some());
        let all: f64 = clients.map(|(name, ..)| units(&held, name)).sum();
        assert!((999.0..=1_000.0).contains(&all), "{all}");
    }
}
