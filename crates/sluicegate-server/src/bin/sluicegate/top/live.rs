//! Shows the state of a server on the terminal until the user ends it.

use std::io::{self, IsTerminal as _, stdout};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, restore, try_init, try_restore};
use sluicegate_server::status::Status;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::ask::Server;
use super::view::{View, draw};
use crate::running::{Signals, until_stopped};

/// The longest time between two attempts while the server is away.
const SLOWEST: Duration = Duration::from_secs(15);

/// How often to look whether the terminal is still there.
const LOOK: Duration = Duration::from_secs(1);

/// The exit status of a process whose terminal was closed, as shells write it for `SIGHUP`.
const CLOSED: i32 = 128 + 1;

/// How long a key is waited for before answers of the server are looked at.
const SOON: Duration = Duration::from_millis(50);

enum News {
    Asked(Result<Box<Status>, String>),
    Stop,
}

/// Takes the terminal and gives it back, whether the user ends this, a signal, an error or a panic.
pub(super) fn run(runtime: &Runtime, server: Server, interval: Duration) -> io::Result<()> {
    let (sender, news) = channel();
    let stop = sender.clone();
    let stopped = {
        let _entered = runtime.enter();
        until_stopped(Signals::new()?, || closed())
    };
    runtime.spawn(async {
        while stdout().is_terminal() {
            tokio::time::sleep(LOOK).await;
        }
        closed();
    });
    runtime.spawn(async move {
        stopped.await;
        // The receiver may have ended by itself.
        let _ = stop.send(News::Stop);
    });
    let asking = runtime.spawn(ask(server, interval, sender));
    // It restores the terminal after a panic too, of any thread.
    let shown = try_init().and_then(|mut terminal| show(&mut terminal, &news, &asking));
    restore();
    shown
}

/// Ends the process, because its terminal is gone: the window was closed, or the connection was lost. The thread that
/// waits for keys could not end it, because reading from such a terminal fails again and again.
fn closed() -> ! {
    // The terminal may be there after all.
    let _ = try_restore();
    std::process::exit(CLOSED);
}

/// Asks again and again, less often while the server is away.
async fn ask(server: Server, interval: Duration, sender: Sender<News>) {
    let mut wait = interval;
    loop {
        let asked = server.status().await.map(Box::new);
        wait = if asked.is_ok() { interval } else { (wait * 2).min(SLOWEST).max(interval) };
        if sender.send(News::Asked(asked)).is_err() {
            return;
        }
        tokio::time::sleep(wait).await;
    }
}

fn show(
    terminal: &mut DefaultTerminal,
    news: &Receiver<News>,
    asking: &JoinHandle<()>,
) -> io::Result<()> {
    let mut view = View::default();
    loop {
        terminal.draw(|frame| draw(frame, &mut view))?;
        loop {
            match news.try_recv() {
                Ok(News::Asked(asked)) => {
                    view.heard(asked);
                    break;
                }
                Ok(News::Stop) => return Ok(()),
                Err(_) if asking.is_finished() => {
                    return Err(io::Error::other("the server is no longer asked"));
                }
                Err(_) => {}
            }
            // All that have come are read, because drawing may take longer than pressing a key.
            let mut wait = SOON;
            let mut is_changed = false;
            while event::poll(wait)? {
                match event::read()? {
                    Event::Key(key) if ends(key) => return Ok(()),
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        view.scroll(key.code, terminal.size()?.height);
                        is_changed = true;
                    }
                    Event::Resize(..) => is_changed = true,
                    _ => {}
                }
                wait = Duration::ZERO;
            }
            if is_changed {
                break;
            }
        }
    }
}

fn ends(key: KeyEvent) -> bool {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
        KeyCode::Char(char) => is_control && matches!(char, 'c' | 'd'),
        _ => false,
    }
}

impl View {
    fn heard(&mut self, asked: Result<Box<Status>, String>) {
        match asked {
            Ok(status) => {
                *self = Self { status: Some(*status), from: self.from, ..Self::default() };
            }
            Err(trouble) => self.trouble = Some(trouble),
        }
    }

    /// The drawing keeps to the lines that there are.
    fn scroll(&mut self, key: KeyCode, height: u16) {
        let page = usize::from(height / 2).max(1);
        self.from = match key {
            KeyCode::Down | KeyCode::Char('j') => self.from.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.from.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.from.saturating_add(page),
            KeyCode::PageUp => self.from.saturating_sub(page),
            KeyCode::Home => 0,
            KeyCode::End => usize::MAX,
            _ => self.from,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_control_c_end_it() {
        let plain = |code| ends(KeyEvent::new(code, KeyModifiers::NONE));
        assert!(plain(KeyCode::Char('q')) && plain(KeyCode::Esc));
        assert!(ends(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(!plain(KeyCode::Char('c')) && !plain(KeyCode::Down));
    }

    #[test]
    fn trouble_keeps_what_was_known_and_an_answer_ends_it() {
        let mut view = View::default();
        view.heard(Ok(Box::default()));
        view.heard(Err("no answer".to_owned()));
        assert!(view.status.is_some() && view.trouble.is_some());
        view.laid_out = Some((80, Vec::new()));
        view.heard(Ok(Box::default()));
        assert!(view.trouble.is_none() && view.laid_out.is_none());
    }
}
