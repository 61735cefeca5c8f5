use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection that speaks as much of Redis' protocol as these tests need.
#[derive(Debug)]
pub struct Connection(BufReader<TcpStream>);

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A line.
    Line(String),
    /// An error.
    Error(String),
    /// A number.
    Number(i64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// An array.
    List(Vec<Self>),
    /// Nil.
    Nothing,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// If no server listens there.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        Self::open_for(address, PATIENCE)
    }

    /// Connects, with a time limit for each answer.
    pub(super) fn open_for(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a command, and reads its answer.
    ///
    /// # Errors
    ///
    /// If the server does not answer in time, or goes away. An error that it answers is a [`Reply`].
    pub fn call<W: AsRef<[u8]>>(
        &mut self,
        words: impl IntoIterator<Item = W>,
    ) -> io::Result<Reply> {
        let (mut count, mut body) = (0, Vec::new());
        for word in words {
            let word = word.as_ref();
            body.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            body.extend_from_slice(word);
            body.extend_from_slice(b"\r\n");
            count += 1;
        }
        let mut command = format!("*{count}\r\n").into_bytes();
        command.append(&mut body);
        self.0.get_mut().write_all(&command)?;
        self.read()
    }

    /// Reads what the server sends next, for example to a monitor.
    ///
    /// # Errors
    ///
    /// If it sends nothing in time, or goes away.
    pub fn read(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let strange = || io::Error::new(io::ErrorKind::InvalidData, format!("no answer: {line:?}"));
        let (kind, rest) = line.split_at_checked(1).ok_or_else(strange)?;
        let number = || rest.parse::<i64>().map_err(|_| strange());
        Ok(match kind {
            "+" => Reply::Line(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Number(number()?),
            "$" => match usize::try_from(number()?) {
                Ok(length) => self.bytes(length)?,
                Err(_) => Reply::Nothing,
            },
            "*" => match usize::try_from(number()?) {
                Ok(length) => {
                    Reply::List((0..length).map(|_| self.read()).collect::<Result<_, _>>()?)
                }
                Err(_) => Reply::Nothing,
            },
            _ => return Err(strange()),
        })
    }

    fn bytes(&mut self, length: usize) -> io::Result<Reply> {
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(Reply::Bytes(bytes))
    }
}

impl Reply {
    /// The reply, which must be neither an error nor nil.
    ///
    /// # Panics
    ///
    /// If it is one of these.
    #[track_caller]
    pub fn expect(self, what: &str) -> Self {
        match self {
            Self::Error(_) | Self::Nothing => panic!("{what}: {self:?}"),
            other => other,
        }
    }

    /// The reply as text: a line, or bytes.
    ///
    /// # Panics
    ///
    /// If it is neither.
    #[track_caller]
    pub fn text(self) -> String {
        match self {
            Self::Line(line) => line,
            Self::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            other => panic!("no text: {other:?}"),
        }
    }

    /// The reply as a number.
    ///
    /// # Panics
    ///
    /// If it is not a number.
    #[track_caller]
    pub fn number(self) -> i64 {
        match self {
            Self::Number(number) => number,
            other => panic!("no number: {other:?}"),
        }
    }

    /// The reply as a list.
    ///
    /// # Panics
    ///
    /// If it is not a list.
    #[track_caller]
    pub fn list(self) -> Vec<Self> {
        match self {
            Self::List(list) => list,
            other => panic!("no list: {other:?}"),
        }
    }
}
