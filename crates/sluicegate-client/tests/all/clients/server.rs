use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// No answer at all. An empty answer closes the connection.
pub(crate) const STALL: &str = "stall";

/// A server that answers each request with the next of its answers, and with the last one from then on.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

struct State {
    answers: Vec<String>,
    seen: Vec<String>,
}

impl Server {
    /// `answers` are heads of responses: `429 Too Many Requests\r\nretry-after: 5`.
    pub(crate) async fn start(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers = answers.iter().rev().map(|answer| answer.to_string()).collect();
        let state = Arc::new(Mutex::new(State { answers, seen: Vec::new() }));
        let server = Self { url, state };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        server
    }

    async fn serve(self, mut stream: TcpStream) {
        let mut head = Vec::new();
        while let Ok(byte) = stream.read_u8().await {
            head.push(byte);
            if !head.ends_with(b"\r\n\r\n") {
                continue;
            }
            let text = String::from_utf8_lossy(&head).to_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            stream.read_exact(&mut body).await.unwrap();
            let answer = self.answer(text);
            if answer.is_empty() {
                return;
            }
            if answer == STALL {
                // Until the client hangs up.
                let _ = stream.read_u8().await;
                return;
            }
            let response = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(response.as_bytes()).await.unwrap();
            head.clear();
        }
    }

    fn answer(&self, head: String) -> String {
        let mut state = self.state.lock().unwrap();
        state.seen.push(head);
        match &mut state.answers {
            answers if answers.len() > 1 => answers.pop().unwrap(),
            answers => answers[0].clone(),
        }
    }

    /// The heads of the requests that came, in lower case.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.state.lock().unwrap().seen.clone()
    }
}
