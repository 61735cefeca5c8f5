//! actix-web with several workers that share one count: a limit for each client address on everything,
//! and a stricter one on `/login`.
//!
//!     cargo run --example actix

use std::time::Duration;

use actix_web::{App, HttpServer, web};
use sluicegate_actix::{CurrentDecision, Ip, Limit, RateLimit};

// Sliding logs: never more than ten requests in any ten seconds. See the example for axum.
const EVERYTHING: Limit = Limit::sliding_log(10, Duration::from_secs(10)).named("everything");
const LOGIN: Limit = Limit::sliding_log(3, Duration::from_secs(60)).named("login");

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    // Made once, outside of the closure that runs in each worker: clones share one count.
    let everything = RateLimit::new(EVERYTHING.by(Ip::peer()));
    let logins = RateLimit::new(LOGIN.by(Ip::peer()));

    let (listener, url) = sluicegate_examples::listen().await;
    println!(
        "Ten requests in ten seconds for each address, whichever of the four workers they reach:

    curl -i {url}/
    curl -s -o /dev/null -w '%{{http_code}}\\n' '{url}/?[1-12]'

Three in a minute for /login; one that is refused there does not count as one of the ten:

    curl -i '{url}/login?[1-4]'

What is refused says in Retry-After when it would be admitted. Ctrl-C ends this."
    );

    HttpServer::new(move || {
        App::new()
            .wrap(everything.clone())
            .route("/", web::get().to(hello))
            .service(web::resource("/login").wrap(logins.clone()).route(web::get().to(login)))
    })
    .workers(4)
    .listen(listener.into_std()?)?
    .run()
    .await
}

/// Clients read what remains in the `RateLimit` field of the response, and handlers in the decision.
async fn hello(CurrentDecision(decision): CurrentDecision) -> String {
    format!("Hello! You have {} left.\n", decision.remaining().unwrap_or_default())
}

/// With two layers, the decision is that of the inner one.
async fn login(CurrentDecision(decision): CurrentDecision) -> String {
    format!("Welcome! You have {} logins left.\n", decision.remaining().unwrap_or_default())
}
