//! The pages that `sluicegate replay` and `sluicegate suggest` write, as a browser shows them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use sluicegate_counterparts::sluicegate;
use tempfile::TempDir;

use super::WIDEST;
use super::devtools::Page;

/// As wide as a small telephone.
const NARROW: u32 = 360;

/// Keys and paths that run a script if they are taken for markup.
const KEY: &str = "</script><script>document.title='owned'\u{2028}";
const PATH: &str = "/<!--<script><img src=x onerror=alert()>";

const RULES: &str = "[[rules]]\nname = \"api\"\nkey = { header = \"x-api-key\" }\nlimits = [\"20/minute burst 5\"]\n\
     [[rules]]\nname = \"wide</script><b>\"\nkey = \"ip\"\nlimits = [\"1000/hour\"]\n";

const CLIENTS: u64 = 40;

/// How many requests a client sends in its busiest minute. In each of two minutes before, it sends one.
const fn busiest(client: u64) -> u64 {
    client * client / 8 + 1
}

/// A log of three minutes, with a folder of its own.
fn folder() -> TempDir {
    let mut requests = Vec::new();
    for client in 0..CLIENTS {
        requests.push((client, 0));
        requests.push((client, 60_000));
        requests.extend((0..busiest(client)).map(|number| (client, 120_000 + 50 * number)));
    }
    requests.sort_by_key(|(_, at)| *at);
    let mut log = String::new();
    for (client, at) in requests {
        let key = if client == CLIENTS - 1 { KEY.to_owned() } else { format!("key-{client}") };
        // A minute of the clock begins here.
        let line = json!({
            "msec": 1_764_000_000.0 + at as f64 / 1e3,
            "remote_addr": format!("192.0.2.{client}"),
            "request": format!("GET {} HTTP/1.1", PATH.replace(' ', "\u{a0}")),
            "status": 200,
            "request_time": 0,
            "http_x_api_key": key,
        });
        writeln!(log, "{line}").expect("text");
    }
    let folder = tempfile::tempdir().expect("a directory");
    fs::write(folder.path().join("access.log"), log).expect("a log");
    fs::write(folder.path().join("rules.toml"), RULES).expect("rules");
    folder
}

/// Runs the command in the folder, and opens the page that it writes.
async fn open(folder: &Path, command: &str, more: &[&str]) -> Page {
    let arguments =
        ["access.log", "--fields", "http_x_api_key=http_x_api_key", "--html", "report.html"];
    let run = Command::new(sluicegate())
        .arg(command)
        .args(arguments)
        .args(more)
        .current_dir(folder)
        .output()
        .expect("the command");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    Page::open(&format!("file://{}/report.html", folder.display()), NARROW).await
}

/// What a limit of a minute would have refused: clients, and the share of requests.
fn truth(limit: u64) -> (usize, f64) {
    let over = (0..CLIENTS).map(busiest).filter(|count| *count > limit);
    let refused: u64 = over.clone().map(|count| count - limit).sum();
    let all: u64 = (0..CLIENTS).map(|client| busiest(client) + 2).sum();
    (over.count(), refused as f64 / all as f64)
}

/// Drags the line to the middle, then moves it by keys, and compares what it says with the truth each time.
async fn drag(page: &mut Page) {
    let mut limits = Vec::new();
    let place = "(() => { const box = document.querySelector('.handle').getBoundingClientRect();
        const plot = document.querySelector('.plot').getBoundingClientRect();
        return [box.left + 20, box.top + box.height / 2, plot.top, plot.height]; })()";
    page.run("document.querySelector('.handle').scrollIntoView({ block: 'center' })").await;
    let before = said(page).await;
    let place = page.run(place).await;
    let [x, y, top, height] = [0, 1, 2, 3].map(|at| place[at].as_f64().expect("a number"));
    for share in [0.6, 0.35] {
        let from = if limits.is_empty() { y } else { top + 0.6 * height };
        page.drag((x, from), (x, top + share * height)).await;
        limits.push(said(page).await);
    }
    for key in ["ArrowDown", "PageUp", "Home", "ArrowUp", "End"] {
        page.press(key).await;
        limits.push(said(page).await);
    }
    assert!(limits[0] != before && limits[0] < limits[1], "{before:?} {limits:?}");
    assert_eq!((limits[4], limits[5]), (1, 2), "{limits:?}");
    assert!(limits[2] < limits[1] && limits[3] > limits[1], "{limits:?}");
}

/// The limit at the line. What the page says about it is true.
async fn said(page: &mut Page) -> u64 {
    let said = page.run("[+document.querySelector('.handle').getAttribute('aria-valuenow'), document.querySelector('.picture output').textContent]").await;
    let limit = said[0].as_u64().expect("a limit");
    let (touched, share) = truth(limit);
    let percent = format!("{:.1}", 100.0 * share);
    let percent = percent.trim_end_matches(".0");
    let expected =
        format!("A limit of {limit} in a minute would have refused {touched} of 40 clients (");
    let text = said[1].as_str().expect("text").replace(',', "");
    assert!(text.starts_with(&expected), "{expected}: {text}");
    // Less than one in a hundred has more digits.
    assert!(
        share < 0.01 || text.ends_with(&format!("and {percent} % of the requests.")),
        "{percent}: {text}"
    );
    limit
}

/// Nothing was loaded, ran or went wrong, and nothing is wider than the page.
async fn is_sound(page: &mut Page) {
    let inert = "[document.title.startsWith('owned'), document.querySelectorAll('img, main b b, main script').length]";
    assert_eq!(page.run(inert).await, json!([false, 0]));
    assert_eq!(page.console(), [""; 0]);
    assert!(
        page.asked().all(|asked| asked.ends_with("/report.html")),
        "{:?}",
        page.asked().collect::<Vec<_>>()
    );
    assert_eq!(page.asked().count(), 1);
    let width = page.run("document.documentElement.scrollWidth").await;
    assert_eq!(width, NARROW, "{}", page.run(WIDEST).await);
    let mut papers = Vec::new();
    for scheme in ["light", "dark"] {
        page.prefer(scheme).await;
        papers.push(page.run("getComputedStyle(document.body).backgroundColor").await);
    }
    assert_eq!(papers, ["rgb(251, 250, 247)", "rgb(22, 24, 28)"]);
}

#[tokio::test]
async fn the_page_of_a_replay_says_whom_a_limit_touches() {
    let folder = folder();
    let more = ["--rules", "rules.toml", "--show-keys"];
    let mut page = open(folder.path(), "replay", &more).await;
    page.until("document.querySelectorAll('.policy').length === 2").await;
    let names = page
        .run("[...document.querySelectorAll('.policy h2')].map((name) => name.textContent)")
        .await;
    assert_eq!(names, json!(["api", "wide</script><b>"]));
    let worst = page
        .run("document.querySelector('.policy table:nth-of-type(2) tbody th').textContent")
        .await;
    // Keys are written with escapes.
    assert!(
        worst
            .as_str()
            .is_some_and(|key| key.starts_with("header:x-api-key=") && key.contains("script")),
        "{worst}"
    );
    assert_eq!(
        page.run("+document.querySelector('.handle').getAttribute('aria-valuenow')").await,
        20
    );
    drag(&mut page).await;
    assert_eq!(page.run("document.querySelectorAll('.week i').length").await, 168);
    is_sound(&mut page).await;
}

#[tokio::test]
async fn the_page_of_suggested_limits_begins_with_their_line() {
    let folder = folder();
    let mut page = open(folder.path(), "suggest", &["--by", "{ header = \"x-api-key\" }"]).await;
    page.until("!document.getElementById('rules').hidden").await;
    let windows = page
        .run(
            "[...document.querySelectorAll('#windows option')].map((window) => window.textContent)",
        )
        .await;
    assert_eq!(windows, json!(["a second", "10 seconds", "a minute"]));
    drag(&mut page).await;
    let change = "(() => { const select = document.querySelector('#windows select'); select.value = '0';
        select.dispatchEvent(new Event('change')); return document.querySelector('.picture output').textContent; })()";
    let second: Value = page.run(change).await;
    assert!(second.as_str().is_some_and(|text| text.contains(" in a second ")), "{second}");
    is_sound(&mut page).await;
}
