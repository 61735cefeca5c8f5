//! What policies cost: the same limit for all clients, as it is, as a carried limit, chosen by tier or by case, and
//! from a file. Only tower, without fields and extensions.

use axum::body::Body;
use http::Request;
use sluicegate::adapter::{HttpView, Plain};
use sluicegate::key::{Claims, Method, Path};
use sluicegate::rule::{Cases, Rule};
use sluicegate::{Claim, Fields, Global, Limit, RateLimitLayer, Tiers, when};
use sluicegate_config::{Environment, Live, Policies, read_toml};
use tower::layer::Layer;

use super::tower::{called, hello};
use super::{App, Budget};

/// Notes for readers of the table.
pub const NOTES: &str = "\
Every request carries a claim, \"plan\", as an authentication of one's own would leave it: making that is in
all rows. Limits of a file, of tiers and of cases are carried over when their numbers change, so their rows
hold more than two words.";

/// The index of the baseline in [`served`].
pub const PLAIN: usize = 0;

/// Services that admit every request.
pub fn served() -> Vec<App> {
    let limit = Budget::Plenty.limit().named("all");
    let tiers = Tiers::new("all").tier("free", limit).tier("paid", limit).otherwise("free");
    let cases: Cases<_> = when(Method.is("POST"), limit).otherwise(limit);
    vec![
        app("one limit", limit.by(Global)),
        app("under a condition on the path", limit.by(Global).when(Path.matches("/{*rest}"))),
        app("carried over", limit.carried().by(Global)),
        app("by tier", tiers.by_tier(Claim("plan")).by(Global)),
        app("by case", cases.by(Global)),
        app("a file with 1 rule", Live::of(policies(&limit, 0))),
        app("a file with 10 rules, of which 1 applies", Live::of(policies(&limit, 9))),
    ]
}

/// A rule for all requests, behind a number of rules for other paths.
fn policies(limit: &Limit, others: usize) -> Policies {
    let other =
        |at| rule(&format!("r{at}"), &format!("when = {{ path = \"/v{at}/{{*rest}}\" }}"), limit);
    let text: String = (0..others).map(other).chain([rule("all", "", limit)]).collect();
    let document = read_toml(&text).expect("a document");
    Policies::new(&document, &Environment::new()).expect("policies")
}

fn rule(name: &str, when: &str, limit: &Limit) -> String {
    let (count, burst) = (limit.count(), limit.capacity());
    format!(
        "[[rules]]\nname = \"{name}\"\nkey = \"global\"\nlimits = [\"{count}/second burst {burst}\"]\n{when}\n"
    )
}

fn app<R>(name: &'static str, rule: R) -> App
where
    R: for<'a> Rule<HttpView<'a, Body, Plain>> + Clone + Send + Sync + 'static,
{
    let layer = RateLimitLayer::new(rule).fields(Fields::NONE).extensions(false);
    called(name, layer.layer(hello()), || {
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(Claims::new().with("plan", "paid"));
        request
    })
}
