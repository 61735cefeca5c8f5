//! A login where only wrong passwords count, for each user name and for each address. An address that
//! goes on guessing is banned.
//!
//!     cargo run --example login

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Form, Router};
use sluicegate_axum::key::{Extension, KeyBuf, Part};
use sluicegate_axum::{Ip, Limit, RateLimitLayer};
use tracing_subscriber::filter::LevelFilter;

const MINUTE: Duration = Duration::from_secs(60);

// Against guessing the password of one name from many addresses. Without a ban, because everybody who
// knows the name could shut its owner out.
const NAME: Limit = Limit::sliding_log(3, MINUTE).named("wrong-for-this-name");

// Against trying one password on many names. An address that exceeds this is refused, even with the right
// password, until five minutes after the limit alone would have admitted it again.
const ADDRESS: Limit =
    Limit::sliding_log(10, MINUTE).ban(Duration::from_secs(300)).named("wrong-from-this-address");

#[derive(Clone)]
struct Login {
    name: String,
    password: String,
}

/// The name that is counted, in the spelling that is checked.
impl Part for Login {
    fn write(&self, key: &mut KeyBuf) {
        self.name.write(key);
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    // The layer logs refusals at this level, and problems for the operator at higher ones.
    tracing_subscriber::fmt().with_max_level(LevelFilter::DEBUG).init();

    // An attempt counts from its arrival until the answer is known not to be 401. So guesses that are sent in
    // parallel do not slip through, and an address that many users share needs a limit with room for those who
    // log in at the same moment.
    let wrong = |status| status == 401;
    let rule = (
        NAME.by(Extension::<Login>::new()).count_if(wrong),
        ADDRESS.by(Ip::peer()).count_if(wrong),
    );

    let app = Router::new()
        .route("/login", post(login))
        .layer(RateLimitLayer::new(rule))
        // Added last, so it is the outermost and runs first.
        .layer(from_fn(read_login));

    let (listener, url) = sluicegate_examples::listen().await;
    println!(
        "Wrong passwords: three a minute for each name, ten for each address, then it is banned.

    curl -s '{url}/login?[1-20]' -d name=paula -d password=correct  # right ones do not count
    curl -s '{url}/login?[1-4]' -d name=fern -d password=guess      # the name's limit
    for i in $(seq 8); do curl -s {url}/login -d name=user$i -d password=guess; done
    curl -i {url}/login -d name=paula -d password=correct           # banned
"
    );
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await
}

/// Reads the form once, for the limit and for the handler, so that both see the same spelling of the name.
async fn read_login(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let form = Request::from_parts(parts.clone(), body);
    let Form(mut form) = match Form::<HashMap<String, String>>::from_request(form, &()).await {
        Ok(form) => form,
        Err(rejection) => return rejection.into_response(),
    };
    let mut field = |name| form.remove(name).unwrap_or_default();
    let login = Login { name: field("name").to_lowercase(), password: field("password") };

    let mut request = Request::from_parts(parts, Body::empty());
    request.extensions_mut().insert(login);
    next.run(request).await
}

async fn login(axum::Extension(login): axum::Extension<Login>) -> (StatusCode, &'static str) {
    match (login.name.as_str(), login.password.as_str()) {
        ("fern" | "paula", "correct") => (StatusCode::OK, "welcome\n"),
        // The same answer for a wrong name and for a wrong password.
        _ => (StatusCode::UNAUTHORIZED, "wrong name or password\n"),
    }
}
