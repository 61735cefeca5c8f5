//! A scripted server that speaks just enough of the protocol for these tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// The words of a command.
pub(crate) type Command = Vec<Vec<u8>>;

/// What the server does about a command.
pub(crate) enum Act {
    Say(Vec<u8>),
    /// Sends it when the test says so.
    Hold(Vec<u8>),
    Nothing,
    Close,
    /// Admits, and closes the connection.
    Last,
}

type Told = Box<dyn FnMut(&str, &Command) -> Option<Act> + Send>;

#[derive(Clone)]
pub(crate) struct Fake {
    address: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    told: Mutex<Told>,
    seen: Mutex<Vec<String>>,
    changed: Condvar,
    held: Mutex<Vec<(TcpStream, Vec<u8>)>>,
    open: Mutex<Vec<TcpStream>>,
    /// Connections that the other side has not closed.
    served: AtomicUsize,
}

/// An upper bound on any wait that is not endless.
const FOR_EVER: Duration = Duration::from_secs(20);

impl Fake {
    /// A server that does what `told` returns for a command. Otherwise it does the usual: it greets, and admits every
    /// charge.
    pub(crate) fn new(told: impl FnMut(&str, &Command) -> Option<Act> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let inner = Arc::new(Inner {
            told: Mutex::new(Box::new(told)),
            seen: Mutex::default(),
            changed: Condvar::new(),
            held: Mutex::default(),
            open: Mutex::default(),
            served: AtomicUsize::new(0),
        });
        let fake = Self { address, inner };
        let server = fake.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (server, stream) = (server.clone(), stream.expect("a connection"));
                thread::spawn(move || server.serve(stream));
            }
        });
        fake
    }

    /// A server that is well.
    pub(crate) fn well() -> Self {
        Self::new(|_, _| None)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many commands with this name have come.
    pub(crate) fn seen(&self, name: &str) -> usize {
        self.inner.seen.lock().unwrap().iter().filter(|seen| *seen == name).count()
    }

    /// How many scripts have come, by their names or in full. The first settlement on a connection comes in full.
    pub(crate) fn evaluated(&self) -> usize {
        self.seen("EVALSHA") + self.seen("EVAL")
    }

    /// Waits until this many commands with this name have come.
    pub(crate) fn wait_for(&self, name: &str, count: usize) {
        let seen = self.inner.seen.lock().unwrap();
        let too_few =
            |seen: &mut Vec<String>| seen.iter().filter(|seen| *seen == name).count() < count;
        let (seen, waited) =
            self.inner.changed.wait_timeout_while(seen, FOR_EVER, too_few).unwrap();
        assert!(!waited.timed_out(), "waited for {count} of {name}, and saw {seen:?}");
    }

    /// Sends what was held back: all at once on each connection, so that nothing else comes in between.
    pub(crate) fn release(&self) {
        let mut said: Vec<(TcpStream, Vec<u8>)> = Vec::new();
        for (stream, words) in self.inner.held.lock().unwrap().drain(..) {
            let of = |stream: &TcpStream| stream.peer_addr().ok();
            match said.iter_mut().find(|(other, _)| of(other) == of(&stream)) {
                Some((_, before)) => before.extend(words),
                None => said.push((stream, words)),
            }
        }
        for (mut stream, words) in said {
            let _ = stream.write_all(&words);
        }
    }

    /// Sends one more byte of each answer that is held back.
    pub(crate) fn drip(&self) {
        for (stream, words) in self.inner.held.lock().unwrap().iter_mut() {
            if !words.is_empty() {
                let _ = stream.write_all(&[words.remove(0)]);
            }
        }
    }

    /// Closes all connections.
    pub(crate) fn hang_up(&self) {
        for stream in self.inner.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Waits until at most this many connections are open.
    pub(crate) async fn wait_until_open_are(&self, most: usize) {
        for _ in 0..20_000 {
            if self.inner.served.load(Ordering::SeqCst) <= most {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{} connections", self.inner.served.load(Ordering::SeqCst));
    }

    fn serve(&self, stream: TcpStream) {
        self.inner.served.fetch_add(1, Ordering::SeqCst);
        self.answer(stream);
        self.inner.served.fetch_sub(1, Ordering::SeqCst);
    }

    fn answer(&self, stream: TcpStream) {
        self.inner.open.lock().unwrap().push(stream.try_clone().expect("a handle"));
        let mut writer = stream.try_clone().expect("a handle");
        let mut reader = BufReader::new(stream);
        while let Some(command) = read(&mut reader) {
            let name = String::from_utf8_lossy(&command[0]).to_uppercase();
            let told = (self.inner.told.lock().unwrap())(&name, &command);
            let act = told.unwrap_or_else(|| usual(&name, &command));
            if let Act::Hold(words) = &act {
                let stream = writer.try_clone().expect("a handle");
                self.inner.held.lock().unwrap().push((stream, words.clone()));
            }
            // Counted before the answer is sent, so a test that has the answer finds the call counted.
            self.inner.seen.lock().unwrap().push(name);
            self.inner.changed.notify_all();
            match act {
                Act::Say(words) => {
                    let _ = writer.write_all(&words);
                }
                Act::Last => {
                    let _ = writer.write_all(&admitted());
                    let _ = writer.shutdown(std::net::Shutdown::Both);
                }
                Act::Close => {
                    let _ = writer.shutdown(std::net::Shutdown::Both);
                }
                Act::Hold(_) | Act::Nothing => {}
            }
        }
    }
}

fn usual(name: &str, command: &Command) -> Act {
    Act::Say(match name {
        "HELLO" => b"%1\r\n+proto\r\n:3\r\n".to_vec(),
        "EVALSHA" | "EVAL" if is_charge(command) => admitted(),
        "EVALSHA" | "EVAL" => b":1\r\n".to_vec(),
        _ => b"+OK\r\n".to_vec(),
    })
}

/// Whether a script charges one plain limit: its argument then holds eight numbers for that.
pub(crate) fn is_charge(command: &Command) -> bool {
    command.last().is_some_and(|argument| argument.len() == CHARGE)
}

/// Whether a script renews the places in one row: its argument then holds five numbers.
pub(crate) fn is_renewal(command: &Command) -> bool {
    command.last().is_some_and(|argument| argument.len() == 5 * 8)
}

/// What the argument of a charge to one plain limit measures.
const CHARGE: usize = 8 * 8;

/// A charge to a bucket of 100 a minute, admitted.
pub(crate) fn admitted() -> Vec<u8> {
    answer(1, 0.0, 1)
}

/// An answer that makes the request wait for a second.
pub(crate) fn queued() -> Vec<u8> {
    answer(1, 1_000_000.0, 1)
}

/// An answer that refuses for a second.
pub(crate) fn refused() -> Vec<u8> {
    answer(0, 1_000_000.0, 3)
}

/// An answer that refuses because the bucket is full.
pub(crate) fn full() -> Vec<u8> {
    with_debt(0, 600_000.0, 3, 60_000_000.0)
}

/// A charge to three such buckets, admitted.
pub(crate) fn admitted_by_three() -> Vec<u8> {
    with_debts(1, 0.0, 1, &[600_000.0; 3])
}

fn answer(verdict: u8, micros: f64, role: u8) -> Vec<u8> {
    with_debt(verdict, micros, role, 600_000.0)
}

fn with_debt(verdict: u8, micros: f64, role: u8, debt: f64) -> Vec<u8> {
    with_debts(verdict, micros, role, &[debt])
}

/// A charge of one place of a concurrency limit, admitted.
pub(crate) fn held() -> Vec<u8> {
    with_words(1, 0.0, 1, &[[1.0, 1.0]])
}

fn with_debts(verdict: u8, micros: f64, role: u8, debts: &[f64]) -> Vec<u8> {
    let words: Vec<_> = debts.iter().map(|debt| [NOW, *debt]).collect();
    with_words(verdict, micros, role, &words)
}

const NOW: f64 = 946_684_800_000_000.0;

fn with_words(verdict: u8, micros: f64, role: u8, rows: &[[f64; 2]]) -> Vec<u8> {
    let mut packed = vec![verdict];
    packed.extend(micros.to_le_bytes());
    packed.extend(NOW.to_le_bytes());
    for words in rows {
        packed.push(role);
        words.iter().for_each(|word| packed.extend(word.to_le_bytes()));
    }
    bulk(&packed)
}

pub(crate) fn bulk(bytes: &[u8]) -> Vec<u8> {
    let mut words = format!("${}\r\n", bytes.len()).into_bytes();
    words.extend(bytes);
    words.extend(b"\r\n");
    words
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Command> {
    let words = number(reader)?;
    (0..words)
        .map(|_| {
            let mut word = vec![0; number(reader)? + 2];
            reader.read_exact(&mut word).ok()?;
            word.truncate(word.len() - 2);
            Some(word)
        })
        .collect()
}

fn number(reader: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.get(1..)?.trim().parse().ok()
}

/// Whether a command of this name runs a script.
pub(crate) fn evaluates(name: &str) -> bool {
    matches!(name, "EVALSHA" | "EVAL")
}
