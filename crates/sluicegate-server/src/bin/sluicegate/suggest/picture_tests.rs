//! The picture of the README: what `suggest --html` shows of the log of the guide.

use std::fmt::Write as _;
use std::path::Path;

use super::CLIENTS;
use super::tests::{FORMAT, shop, suggested_of};
use crate::page::Picture;
use crate::terminal::{grouped, percent};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/which-number.svg");

const STYLE: &str = "svg{--ink:#21242a;--soft:#666b75;--rule:#dfdcd4;--yes:#2b6a6c;--no:#b1402c}\
@media(prefers-color-scheme:dark){svg{--ink:#e4e2dc;--soft:#9aa0aa;--rule:#31353c;--yes:#72bdbb;--no:#ef8b76}}\
text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--soft)}.end{text-anchor:end}.mid{text-anchor:middle}\
.says{font-size:15px;font-weight:600;fill:var(--ink)}path{fill:none;stroke:var(--rule)}.limit{stroke:var(--ink);stroke-width:2}\
.yes{fill:var(--yes);fill-opacity:.35;stroke:var(--yes)}.no{fill:var(--no);fill-opacity:.35;stroke:var(--no)}";

/// Clients by rank, which are on an axis of powers of ten.
struct Drawing<'a> {
    picture: &'a Picture,
    clients: u64,
    highest: u64,
    /// A limit of the table in the guide.
    limit: u64,
}

impl Drawing<'_> {
    fn x(&self, rank: u64) -> f64 {
        60.0 + 816.0 * ((rank + 1) as f64).ln() / ((self.clients + 1) as f64).ln()
    }

    fn y(&self, count: u64) -> f64 {
        292.0 - 232.0 * count as f64 / self.highest as f64
    }

    /// The clients with more requests than `floor`.
    fn outline(&self, floor: u64) -> String {
        let mut path = format!("M{:.1} {:.1}", self.x(0), self.y(floor));
        let mut rank = 0;
        for (level, clients, _) in self.picture.steps.iter().rev() {
            if *clients > 0 && *level > floor {
                rank += clients;
                let _ = write!(path, "V{:.1}H{:.1}", self.y(*level), self.x(rank));
            }
        }
        let _ = write!(path, "V{:.1}Z", self.y(floor));
        path
    }

    fn svg(&self) -> String {
        let Self { limit, .. } = self;
        let Picture { steps, .. } = self.picture;
        let over = steps.iter().filter(|(level, ..)| level > limit);
        let (touched, refused) =
            over.fold((0, 0), |(touched, refused), step| (touched + step.1, refused + step.2));
        let requests: u64 = steps.iter().map(|step| step.2).sum();
        let says = format!(
            "A limit of {limit} in a minute refuses {touched} of {} clients and {} of the requests",
            self.clients,
            percent(refused as f64 / requests as f64)
        );
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 336\" width=\"900\" height=\"336\" role=\"img\" \
             aria-labelledby=\"title summary\">\n<title id=\"title\">Clients by rank, and a limit</title>\n\
             <desc id=\"summary\">{says}. The busiest client has {} requests in its busiest window.</desc>\n<style>{STYLE}</style>\n",
            self.highest
        );
        let mut line = |text: String| {
            let _ = writeln!(svg, "{text}");
        };
        for count in (0..=self.highest).step_by(20) {
            let y = self.y(count);
            line(format!(
                "<path d=\"M60 {y:.1}H876\"/><text x=\"52\" y=\"{:.1}\" class=\"end\">{}</text>",
                y + 4.0,
                grouped(count as f64)
            ));
        }
        line(format!("<path class=\"yes\" d=\"{}\"/>", self.outline(0)));
        line(format!("<path class=\"no\" d=\"{}\"/>", self.outline(*limit)));
        for rank in [1, 10, 100] {
            line(format!("<text x=\"{:.1}\" y=\"312\" class=\"mid\">{rank}</text>", self.x(rank)));
        }
        let y = self.y(*limit);
        line(format!("<path class=\"limit\" d=\"M60 {y:.1}H876\"/>"));
        line(format!("<text x=\"60\" y=\"22\" class=\"says\">{says}</text>"));
        line("<text x=\"60\" y=\"44\">the most requests of a client in a minute</text>".to_owned());
        let all = self.clients;
        line(format!(
            "<text x=\"876\" y=\"44\" class=\"end\">clients by rank, {all} in all</text>"
        ));
        svg + "</svg>\n"
    }
}

#[test]
fn the_picture_of_the_readme_is_what_the_command_finds() {
    let words = ["--format", FORMAT, "--html", "report.html"];
    let suggested = suggested_of(&words, &shop(), CLIENTS).expect("a log");
    let content = suggested.content.expect("a page");
    let picture = content.pictures.iter().find(|picture| picture.window == 60.0);
    let picture = picture.expect("a picture");
    let clients = picture.steps.iter().map(|(_, clients, _)| clients).sum();
    let highest = picture.steps.last().expect("a step").0;
    let svg = Drawing { picture, clients, highest, limit: 50 }.svg();
    assert!(svg.len() < 20_000 && svg.contains("refuses 24 of 301 clients"), "{svg}");
    if std::env::var_os("REWRITE_PICTURE").is_some() {
        std::fs::write(FILE, &svg).expect("the picture");
    }
    let kept = std::fs::read_to_string(Path::new(FILE)).unwrap_or_default();
    assert!(
        kept == svg,
        "docs/which-number.svg is old: REWRITE_PICTURE=1 cargo test -p sluicegate-server --all-features --bin sluicegate picture"
    );
}
