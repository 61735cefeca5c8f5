//! `sluicegate top` against a server that runs.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::client::{Client, Sent};
use super::sluicegate::serve;

const TOKEN: &str = "a token of 22 bytes...";

fn top(address: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
    command.args(["top", "--address", address]).args(more);
    command.env_remove("SLUICEGATE_ADMIN_TOKEN").stdin(Stdio::null());
    command.output().expect("the command")
}

fn said(output: &Output) -> (bool, String) {
    let text = [&*output.stdout, &*output.stderr].concat();
    (output.status.success(), String::from_utf8(text).expect("text"))
}

#[tokio::test]
async fn the_state_of_a_server_is_printed_once() {
    let server = serve(&["--admin", "127.0.0.1:0"]);
    let mut client = Client::http_1(server.http).await;
    assert_eq!(client.send().await, Sent::Answered);
    let admin = server.port("admin").to_string();
    for address in [admin.clone(), format!("http://{admin}/")] {
        let (is_done, text) = said(&top(&address, &["--once"]));
        assert!(is_done, "{text}");
        let lines = text.lines().collect::<Vec<_>>();
        assert!(lines[0].starts_with("sluicegate ") && lines[0].contains(", up "), "{text}");
        assert!(lines[1].contains("store memory"), "{text}");
        for expected in ["policies", "refused most", "policies in force"] {
            assert!(lines.contains(&expected), "{expected} is not in:\n{text}");
        }
        assert!(text.contains("4000000000 per year"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}

#[test]
fn a_server_with_a_token_shows_its_state_to_those_who_have_it() {
    let server = serve(&["--admin", "127.0.0.1:0", "--admin-token", TOKEN]);
    let admin = server.port("admin").to_string();
    let (is_done, text) = said(&top(&admin, &["--once"]));
    assert!(!is_done && text.contains("needs its token, --admin-token"), "{text}");
    let (is_done, text) = said(&top(&admin, &["--once", "--admin-token", "another one"]));
    assert!(!is_done && text.contains("is not its token"), "{text}");
    let (is_done, text) = said(&top(&admin, &["--once", "--admin-token", TOKEN]));
    assert!(is_done && text.contains("policies in force"), "{text}");
}

#[test]
fn what_keeps_the_state_from_being_shown_is_one_sentence() {
    let server = serve(&[]);
    let (http, grpc) = (server.http.to_string(), server.grpc.to_string());
    // Nobody listens there.
    let closed = "127.0.0.1:1";
    for (address, more, expected) in [
        (&*http, &["--once"][..], "is this the admin port?"),
        (&*grpc, &["--once"], "no answer in HTTP"),
        (closed, &["--once"], "cannot reach the server"),
        (closed, &[], "use --once"),
        ("https://localhost", &["--once"], "HTTP without TLS"),
    ] {
        let (is_done, text) = said(&top(address, more));
        assert!(!is_done && text.contains(expected), "{expected} is not in: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

/// What `top` says of a server that answers this.
fn answered(answer: Vec<u8>) -> (bool, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let read = stream.read(&mut [0; 4096]).expect("a request");
        assert!(read > 0);
        // The client may have had enough.
        let _ = stream.write_all(&answer);
    });
    let output = top(&address, &["--once"]);
    serving.join().expect("no panic");
    said(&output)
}

#[test]
fn a_hostile_server_is_shown_and_not_obeyed() {
    let ok = |body: &str| {
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
    };
    let key = r#""\u001b]0;owned\u0007\nroot\u202e""#;
    let status = format!(
        r#"{{"version":{key},"keys":"shown","refused":[{{"policy":{key},"keys":[{{"who":{key}}}]}}]}}"#
    );
    let (is_done, text) = answered(ok(&status));
    assert!(is_done && text.matches(r"\u{1b}]0;owned\u{7}\nroot\u{202e}").count() == 3, "{text}");
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");

    let (is_done, text) = answered(ok(&format!(r#"{{"version":[],"keys":{key}}}"#)));
    assert!(!is_done && text.contains("is not a state of sluicegate"), "{text}");
    let (is_done, text) = answered(ok(&format!(r#"{{"keys":{key}}}"#)));
    assert!(!is_done && !text.contains('\u{1b}') && text.contains("owned"), "{text:?}");
    let (is_done, text) = answered(ok(&" ".repeat(17 << 20)));
    assert!(!is_done && text.contains("cannot be read"), "{text}");
}

/// `top` on a terminal, once it has drawn something, and the terminal's other end.
fn on_a_terminal() -> (Child, File) {
    let terminal =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("a terminal");
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("a size");
    let name = ptsname(&terminal, Vec::new()).expect("its name");
    let open = || {
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        File::options().read(true).write(true).open(path).expect("a terminal")
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
    // Nobody listens there, which is shown too.
    command.args(["top", "--address", "127.0.0.1:1"]).env("TERM", "xterm");
    command.stdin(open()).stdout(open()).stderr(Stdio::null());
    let child = command.spawn().expect("the command");
    drop(command);
    let (mut terminal, mut drawn) = (File::from(terminal), Vec::new());
    while !drawn.windows(10).any(|window| window == b"sluicegate") {
        let mut piece = [0; 4_096];
        let read = terminal.read(&mut piece).expect("a drawing");
        drawn.extend_from_slice(&piece[..read]);
    }
    (child, terminal)
}

fn ends(mut child: Child) -> bool {
    let id = child.id().to_string();
    let (sender, ended) = std::sync::mpsc::channel();
    let waiting = std::thread::spawn(move || sender.send(child.wait().expect("a process")));
    let has_ended = ended.recv_timeout(Duration::from_secs(60)).is_ok();
    if !has_ended {
        Command::new("kill").args(["-s", "KILL", &id]).status().expect("kill");
    }
    let _ = waiting.join().expect("no panic");
    has_ended
}

/// As when a window is closed or a connection is lost. Otherwise it would take a core for ever.
#[test]
fn it_ends_with_its_terminal() {
    let (child, terminal) = on_a_terminal();
    drop(terminal);
    assert!(ends(child), "without a signal");
    let (child, mut terminal) = on_a_terminal();
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-s", "HUP", &id]).status().expect("kill");
    assert!(sent.success());
    // It may write until it ends.
    let reading = std::thread::spawn(move || while terminal.read(&mut [0; 4_096]).is_ok() {});
    assert!(ends(child), "by a signal");
    reading.join().expect("no panic");
}
