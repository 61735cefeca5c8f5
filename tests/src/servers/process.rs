use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs a program beside a shell. The shell passes on the signals that it reads. When its input ends, because the
/// test's process has ended, even if it was killed, the shell kills the program and removes its directory.
///
/// It ignores the signals by which a terminal stops the test, because it has to clean up after the test.
const KEEPER: &str = r#"
    trap '' INT TERM HUP PIPE
    directory=$1; shift
    cd "$directory" || exit
    "$@" >log 2>&1 &
    server=$!
    echo "$server"
    while read -r signal; do
        kill -s "$signal" "$server"
        if [ "$signal" = KILL ]; then wait; exit; fi
        echo "$signal"
    done
    kill -s KILL "$server"; wait
    cd / && rm -rf "$directory"
"#;

/// A program that runs until this is dropped.
#[derive(Debug)]
pub struct Process {
    id: u32,
    keeper: Child,
    orders: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Process {
    /// Starts `program` in `directory`. Its output goes to the file `log` there.
    ///
    /// # Panics
    ///
    /// If this machine has no shell.
    pub fn start(program: &Path, arguments: &[String], directory: &Directory) -> Self {
        // The shell may go on before the program has opened its own.
        let _ = fs::remove_file(directory.0.join("log"));
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(&directory.0).arg(program).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().expect("every Unix has a shell");
        let orders = keeper.stdin.take().expect("it is a pipe");
        let replies = BufReader::new(keeper.stdout.take().expect("it is a pipe"));
        let mut process = Self { id: 0, keeper, orders, replies };
        process.id = process.reply().parse().expect("the shell says the process's number first");
        process
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Sends a signal, such as `STOP`.
    ///
    /// # Panics
    ///
    /// If the shell beside it was killed.
    pub fn signal(&mut self, signal: &str) {
        writeln!(self.orders, "{signal}").expect("the shell reads on");
        assert_eq!(self.reply(), signal);
    }

    fn reply(&mut self) -> String {
        let mut line = String::new();
        self.replies.read_line(&mut line).expect("the shell writes text");
        line.trim_end().to_owned()
    }
}

/// Kills it, and waits until it is gone.
impl Drop for Process {
    fn drop(&mut self) {
        // A process that has ended by itself is fine.
        let _ = writeln!(self.orders, "KILL");
        let _ = self.keeper.wait();
    }
}

/// A temporary directory that is removed when it is dropped.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// Makes an empty one.
    ///
    /// # Panics
    ///
    /// If the machine's folder for such directories cannot be written to.
    pub fn make() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            // Short, because the path of a socket has at most 103 bytes on macOS.
            let path = env::temp_dir().join(format!("sluicegate-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Self(path),
                // An earlier process with the same id has left it behind.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What the program has written since its last start.
    ///
    /// # Errors
    ///
    /// If that cannot be read, for example because it was never started.
    pub fn log(&self) -> io::Result<String> {
        fs::read_to_string(self.0.join("log"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
