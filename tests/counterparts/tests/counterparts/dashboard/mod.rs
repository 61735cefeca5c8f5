//! The dashboard of a server, as a browser shows it.

mod devtools;
#[path = "../../../../../crates/sluicegate-server/tests/server/serving/http.rs"]
mod http;
mod report;

use serde_json::{Value, json};
use sluicegate_core::observe::Watch;
use sluicegate_core::{ManualClock, Memory};
use sluicegate_server::admin::Token;
use sluicegate_server::admin::metrics::Metrics;
use sluicegate_server::status::{Capacity, Client, Resource};
use sluicegate_server::{Policies, Server, Service};

use crate::dashboard::devtools::Page;
use crate::dashboard::http::{post, send};

/// What runs a script if it is shown as markup.
const HOSTILE: &str = "<img src=x onerror=document.title='owned'>";

/// The hostile key, as the server names it.
const SHOWN: &str = "header:x-api-key=%3cimg%20src=x%20onerror=document.title=%27owned%27%3e";

/// As wide as a telephone.
const NARROW: u32 = 390;

const POLICY: &str = "a-policy-with-a-name-that-fills";

const TOKEN: &str = "correct horse battery staple";

#[tokio::test]
async fn live_numbers_are_shown_and_a_hostile_key_is_text() {
    let metrics = Metrics::install().expect("no recorder");
    let server = Server::new(service()).metrics(&metrics);
    let (http, admin) = start(server).await;
    let mut page = Page::open(&format!("http://{admin}/"), NARROW).await;
    page.until("document.getElementById('state').textContent === 'live'").await;
    take(&http, HOSTILE, 32).await;
    take(&http, &"k".repeat(200), 5).await;

    page.until("document.getElementById('refusing').textContent > '0'").await;
    page.until("document.querySelector('#refused td.n')?.textContent === '30'").await;
    page.until(&format!("document.getElementById('policies').textContent.includes('{POLICY}')"))
        .await;
    take(&http, HOSTILE, 7).await;
    page.until("document.querySelector('#refused td.n').textContent === '37'").await;

    let keys = page
        .run("[...document.querySelectorAll('#refused th')].map((key) => key.textContent)")
        .await;
    // Keys are written with escapes, and long ones as digests.
    assert_eq!(keys[0], SHOWN);
    assert!(keys[1].as_str().is_some_and(|key| key.len() > 60), "{keys}");
    let client = page.run("document.querySelector('#capacity .sub th').textContent").await;
    // Names of clients reach the page as they are.
    assert_eq!(client, HOSTILE);
    let inert = page.run("[document.title, document.querySelectorAll('img').length]").await;
    assert_eq!(inert, json!(["sluicegate", 0]));
    let width = page.run("document.documentElement.scrollWidth").await;
    assert_eq!(width, NARROW, "{}", page.run(WIDEST).await);
    assert_eq!(page.console(), [""; 0]);
    let own = format!("http://{admin}/");
    assert!(page.asked().filter(|asked| asked.ends_with("/v1/status")).count() > 1);
    assert!(
        page.asked().all(|asked| asked.starts_with(&own)),
        "{:?}",
        page.asked().collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn calls_that_failed_before_a_decision_are_on_the_page_with_the_last_reason() {
    let (http, admin) = start(Server::new(service())).await;
    let mut page = Page::open(&format!("http://{admin}/"), NARROW).await;
    page.until("document.getElementById('state').textContent === 'live'").await;
    assert_eq!(page.run(FAILED).await, json!([]));
    for _ in 0..3 {
        assert_eq!(post(&http, "/v1/take", "{").await.0, 400);
    }
    page.until(&format!("({FAILED})[0]?.[0] === '3'")).await;
    assert_eq!(page.run(FAILED).await, json!([["3", "the last: http, 400: Bad Request"]]));
}

#[tokio::test]
async fn the_page_asks_whether_a_limit_is_right_and_shows_whom_another_would_refuse() {
    let (http, admin) = start(Server::new(service())).await;
    for (key, times) in [(HOSTILE, 32), (&*"k".repeat(200), 5), ("a", 1)] {
        take(&http, key, times).await;
    }
    let mut page = Page::open(&format!("http://{admin}/"), NARROW).await;
    page.until("document.getElementById('state').textContent === 'live'").await;
    assert!(page.asked().all(|asked| !asked.ends_with("/v1/peaks")));
    page.run("document.getElementById('right').open = true").await;
    let said = "document.querySelector('#pictures output').textContent";
    let touches = |limit, keys| {
        format!("A limit of {limit} in a minute would have refused {keys} at least once, and ")
    };
    let first = touches(2, "2 of 3 keys (66.7 %)") + "86.8 % of the requests.";
    page.until(&format!("{said} === '{first}'")).await;
    page.run("document.querySelector('.handle').focus()").await;
    page.press("ArrowUp").await;
    assert_eq!(
        page.run(said).await,
        touches(3, "2 of 3 keys (66.7 %)") + "81.6 % of the requests."
    );
    for _ in 0..3 {
        page.press("ArrowUp").await;
    }
    assert_eq!(
        page.run(said).await,
        touches(6, "1 of 3 keys (33.3 %)") + "68.4 % of the requests."
    );
    let width = page.run("document.documentElement.scrollWidth").await;
    assert_eq!(width, NARROW, "{}", page.run(WIDEST).await);
    assert_eq!(page.console(), [""; 0]);
}

#[tokio::test]
async fn light_and_dark_have_colours_of_their_own_that_can_be_read() {
    let (_, admin) = start(Server::new(service())).await;
    let mut page = Page::open(&format!("http://{admin}/"), NARROW).await;
    page.until("document.getElementById('state').textContent === 'live'").await;
    let mut papers = Vec::new();
    for scheme in ["light", "dark"] {
        page.prefer(scheme).await;
        papers.push(page.run("getComputedStyle(document.body).backgroundColor").await);
        let contrasts = page.run(CONTRASTS).await;
        let contrasts = contrasts.as_object().expect("colours");
        // WCAG 2.2, 1.4.3.
        let legible = |contrast: &Value| contrast.as_f64().is_some_and(|contrast| contrast >= 4.5);
        assert!(contrasts.len() == 5 && contrasts.values().all(legible), "{scheme}: {contrasts:?}");
    }
    assert_eq!(papers, ["rgb(251, 250, 247)", "rgb(22, 24, 28)"]);
}

#[tokio::test]
async fn the_form_signs_in_with_the_token_and_not_with_another() {
    let token = Token::new(TOKEN).expect("long enough");
    let (_, admin) = start(Server::new(service()).token(token)).await;
    let request = format!("GET /v1/status HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
    assert_eq!(send(&admin, &request).await.0, 401);

    let mut page = Page::open(&format!("http://{admin}/"), NARROW).await;
    page.until("!document.getElementById('login').hidden").await;
    assert_eq!(page.run("document.getElementById('board').hidden").await, true);
    page.run(&submit("not the token at all")).await;
    page.until("document.getElementById('wrong').textContent !== ''").await;
    assert_eq!(page.run("document.getElementById('board').hidden").await, true);
    page.run(&submit(TOKEN)).await;
    page.until("!document.getElementById('board').hidden").await;
    assert_eq!(page.run("document.getElementById('login').hidden").await, true);
    // Scripts cannot read the session, and the token is nowhere in the page.
    assert_eq!(page.run("document.cookie + document.getElementById('token').value").await, "");
    assert!(page.asked().all(|asked| !asked.contains("horse")));

    page.run("document.getElementById('leave').click()").await;
    page.until("!document.getElementById('login').hidden").await;
    assert_eq!(page.run("fetch('/v1/status').then((answer) => answer.status)").await, 401);
    // The browser itself notes each 401.
    let others = page.console().into_iter().filter(|line| !line.contains("status of 401"));
    assert_eq!(others.collect::<Vec<_>>(), [""; 0]);
}

/// The rows about failed calls: their number, and the reason that is shown beside the pointer.
const FAILED: &str = "[...document.querySelectorAll('#latency tr')].filter((row) => row.textContent.includes('failed before'))
    .map((row) => [row.querySelector('td').textContent, row.querySelector('.note')?.textContent])";

/// What is wider than the page.
const WIDEST: &str = "[...document.querySelectorAll('*')].filter((part) => part.getBoundingClientRect().right > innerWidth)
    .map((part) => part.outerHTML.slice(0, 90)).join('\\n')";

/// How well each colour of text can be told from the paper.
const CONTRASTS: &str = "(() => {
    const probe = document.createElement('i');
    document.body.append(probe);
    const light = (name) => {
        probe.style.color = `var(--${name})`;
        const [r, g, b] = getComputedStyle(probe).color.match(/\\d+/g).map((part) => part / 255)
            .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const against = (name) => [light(name), light('paper')].sort((one, other) => other - one);
    const names = ['ink', 'soft', 'yes', 'no', 'warn'];
    const all = names.map((name) => [name, against(name)]).map(([name, [more, less]]) => [name, more / less]);
    probe.remove();
    return Object.fromEntries(all);
})()";

/// Types a token and sends the form.
fn submit(token: &str) -> String {
    format!(
        "document.getElementById('token').value = '{token}';
         document.querySelector('#login button').click();"
    )
}

/// Two requests a minute for each key, by a clock that stands still. Keys are shown.
fn service() -> Service {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rules.toml");
    let rules = format!(
        "[[rules]]\nname = \"{POLICY}\"\nkey = {{ header = \"x-api-key\" }}\nlimits = [\"2/minute\"]\n"
    );
    std::fs::write(&file, rules).expect("a file");
    let policies = Policies::new().rules(&file).unwrap_or_else(|error| panic!("{error}"));
    let store = Memory::builder().clock(ManualClock::new()).build();
    let service =
        Service::builder(policies).store(store).watch(&Watch::new(8).with_peaks(100)).build();
    let service = service.expect("a service");
    service.show_capacity(|| {
        let client = Client { client: HOSTILE.to_owned(), wants: 60.0, granted: 40.0 };
        let resource = "r".repeat(100);
        let resource = Resource { resource, clients: vec![client], ..Resource::default() };
        Capacity { resources: vec![resource], ..Capacity::default() }
    });
    service
}

/// Starts a server. Returns the addresses that decide and that show.
async fn start(server: Server) -> (String, String) {
    let any = "127.0.0.1:0".parse().expect("an address");
    let bound = server.http(any).admin(any).bind().await.expect("free ports");
    let addresses = bound.addresses();
    tokio::spawn(bound.run(std::future::pending()));
    let text = |address: Option<std::net::SocketAddr>| address.expect("a port").to_string();
    (text(addresses.http), text(addresses.admin))
}

/// Spends the limit of a key, and is refused after two requests.
async fn take(http: &str, key: &str, times: usize) {
    let request = json!({ "path": "/", "headers": { "x-api-key": key } }).to_string();
    for _ in 0..times {
        let (status, answer) = post(http, "/v1/take", &request).await;
        assert!(status == 200 || status == 429, "{status} {answer}");
    }
}
