//! A browser that is driven over a pipe, as its own developer tools do.
//!
//! See <https://chromedevtools.github.io/devtools-protocol/>.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_counterparts::chromium;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// How long the browser may take for one answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The browser reads commands from descriptor 3 and writes answers to descriptor 4.
const PIPES: &str = "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null";

/// One page of a headless browser, as wide as a telephone.
pub(crate) struct Page {
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    sent: u64,
    session: Option<String>,
    events: Vec<Value>,
    // Dropped in this order: the browser ends before its profile is removed.
    _browser: Child,
    _profile: TempDir,
}

impl Page {
    /// Opens a page of this width.
    pub(crate) async fn open(url: &str, width: u32) -> Self {
        let profile = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("sh");
        command.args(["-c", PIPES, "sh"]).arg(chromium());
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.args(["--remote-debugging-pipe", "about:blank"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut browser = command.kill_on_drop(true).spawn().expect("it starts");
        let mut page = Self {
            commands: browser.stdin.take().expect("a pipe"),
            answers: BufReader::new(browser.stdout.take().expect("a pipe")),
            sent: 0,
            session: None,
            events: Vec::new(),
            _browser: browser,
            _profile: profile,
        };
        let target = page.call("Target.createTarget", json!({ "url": "about:blank" })).await;
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = page.call("Target.attachToTarget", target).await;
        page.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Runtime", "Log", "Network", "Page"] {
            page.call(&format!("{domain}.enable"), json!({})).await;
        }
        let screen =
            json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": true });
        page.call("Emulation.setDeviceMetricsOverride", screen).await;
        page.call("Page.navigate", json!({ "url": url })).await;
        page
    }

    /// What a script returns.
    pub(crate) async fn run(&mut self, script: &str) -> Value {
        let script = json!({ "expression": script, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", script).await;
        assert!(answer.get("exceptionDetails").is_none(), "{answer}");
        answer["result"]["value"].take()
    }

    /// Waits until a condition holds in the page. Fails with the text of the page.
    pub(crate) async fn until(&mut self, condition: &str) {
        let script = format!(
            "new Promise((done) => {{
                 let left = 1200;
                 const look = () => {{
                     let holds = false;
                     try {{ holds = {condition}; }} catch (error) {{ /* The page is not there yet. */ }}
                     if (holds || left-- === 0) done(holds ? '' : document.documentElement.innerText);
                     else setTimeout(look, 50);
                 }};
                 look();
             }})"
        );
        let text = self.run(&script).await;
        assert_eq!(text, "", "never was: {condition}");
    }

    /// Lets the page prefer light or dark colours.
    pub(crate) async fn prefer(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [feature] })).await;
    }

    /// Presses the left button of the mouse at one point, and releases it at another.
    pub(crate) async fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        for (kind, (x, y), buttons) in
            [("mousePressed", from, 1), ("mouseMoved", to, 1), ("mouseReleased", to, 0)]
        {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event).await;
        }
    }

    /// Presses a key, such as `ArrowUp`.
    pub(crate) async fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key })).await;
        }
    }

    /// The addresses that the page has asked for.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &str> {
        let requests =
            self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        requests.filter_map(|event| event["params"]["request"]["url"].as_str())
    }

    /// What the console has shown: exceptions, and what scripts and the browser say, violations of the policy among it.
    pub(crate) fn console(&self) -> Vec<String> {
        let loud = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
        let events = self.events.iter();
        let shown = events
            .filter(|event| event["method"].as_str().is_some_and(|name| loud.contains(&name)));
        shown.map(|event| event["params"].to_string()).collect()
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let mut command = json!({ "id": self.sent, "method": method, "params": params });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let line = format!("{command}\0");
        self.commands.write_all(line.as_bytes()).await.expect("the browser runs");
        loop {
            let mut message = Vec::new();
            let read = timeout(PATIENCE, self.answers.read_until(0, &mut message));
            read.await.unwrap_or_else(|_| panic!("no answer to {method}")).expect("it can be read");
            assert_eq!(message.pop(), Some(0), "the browser has ended before it answered {method}");
            let mut message: Value = serde_json::from_slice(&message).expect("JSON");
            if message["id"] == self.sent {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].take();
            }
            self.events.push(message);
        }
    }
}
