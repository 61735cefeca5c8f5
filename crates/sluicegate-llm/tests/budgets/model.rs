//! A model behind budgets, whose answers the tests write.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use sluicegate::adapter::{Charge, HttpView};
use sluicegate::key::{Key, KeyBuf};
use sluicegate::response::Body;
use sluicegate::store::Store;
use sluicegate::{Header, Limit, ManualClock, Memory, RateLimitLayer};
use sluicegate_llm::tower::ReadBody;
use sluicegate_llm::{Count, Dialect, Estimate, EstimateLayer, UsageLayer, tokens, used_tokens};
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};

pub(crate) const KEY: Header = Header("x-api-key");
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// 10,000 tokens a minute.
pub(crate) fn budget() -> Limit {
    Limit::per_minute(10_000).named("tokens")
}

/// The parts of a body, one after another; `None` is an error.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream(VecDeque<Option<Bytes>>);

impl Stream {
    pub(crate) fn of(parts: &[&str]) -> Self {
        Self(parts.iter().map(|part| Some(Bytes::copy_from_slice(part.as_bytes()))).collect())
    }

    pub(crate) fn broken(mut self) -> Self {
        self.0.push_back(None);
        self
    }
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(self.0.pop_front().map(|part| part.map(Frame::data).ok_or("broken")))
    }
}

pub(crate) type Answer = Response<Body<Body<Body<Stream>>>>;

/// Answers with what it was given.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) clock: ManualClock,
    store: Memory,
    unread: Arc<dyn Fn() -> u64 + Send + Sync>,
    answer: Arc<Mutex<Response<Stream>>>,
    /// The bodies of the requests that reached the model.
    pub(crate) asked: Arc<Mutex<Vec<Bytes>>>,
    service: BoxCloneSyncService<Request<Full<Bytes>>, Answer, Infallible>,
}

impl Model {
    pub(crate) fn new() -> Self {
        Self::with(Estimate::new())
    }

    pub(crate) fn with(estimate: Estimate) -> Self {
        Self::of(estimate, None)
    }

    /// Each request is settled to `most` at most.
    pub(crate) fn settled_at_most(most: u64) -> Self {
        Self::of(Estimate::new(), Some(most))
    }

    fn of(estimate: Estimate, most: Option<u64>) -> Self {
        let clock = ManualClock::new();
        let store = Memory::builder().capacity(1_000).clock(&clock).build();
        let answer = Arc::new(Mutex::new(Response::new(Stream::default())));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answers, noted) = (Arc::clone(&answer), Arc::clone(&asked));
        let model = service_fn(move |request: Request<ReadBody<Full<Bytes>>>| {
            let (answers, noted) = (Arc::clone(&answers), Arc::clone(&noted));
            async move {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                noted.lock().unwrap().push(body);
                Ok::<_, Infallible>(answers.lock().unwrap().clone())
            }
        });
        let rule = budget().by(KEY).cost(tokens(Count::All)).settle_by(used_tokens(Count::All));
        let rule = most.into_iter().fold(rule, |rule, most| rule.settle_at_most(most));
        let limits = RateLimitLayer::new(rule)
            .store(store.clone())
            .dialect(Dialect::openai().tokens("tokens"));
        let counting = limits.clone();
        let unread = Arc::new(move || counting.counts().unread);
        let service = limits.layer(UsageLayer::new().layer(model));
        let service = EstimateLayer::new(estimate).at_most(100_000).layer(service);
        Self { clock, store, unread, answer, asked, service: BoxCloneSyncService::new(service) }
    }

    /// Answers with a stream of events.
    pub(crate) fn streams(&self, stream: Stream) {
        self.answers(200, "text/event-stream", stream);
    }

    pub(crate) fn answers(&self, status: u16, media: &str, stream: Stream) {
        let response = Response::builder().status(status).header("content-type", media);
        *self.answer.lock().unwrap() = response.body(stream).unwrap();
    }

    /// The next answers declare this length.
    pub(crate) fn declares(&self, length: usize) {
        self.answer.lock().unwrap().headers_mut().insert("content-length", length.into());
    }

    /// How many answers were charged without their usage.
    pub(crate) fn unread(&self) -> u64 {
        (self.unread)()
    }

    /// Sends `body`, and returns the response before its body is read.
    pub(crate) async fn ask(&self, body: &str) -> Answer {
        self.send(request(body)).await
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        self.service.clone().oneshot(request).await.unwrap()
    }

    /// Sends `body` and reads the whole answer. Returns the status.
    pub(crate) async fn ask_and_read(&self, body: &str) -> u16 {
        let response = self.ask(body).await;
        let status = response.status().as_u16();
        // A stream may break.
        let _ = response.into_body().collect().await;
        status
    }

    /// How many tokens are left.
    pub(crate) fn left(&self) -> u64 {
        let mut key = KeyBuf::new();
        KEY.write(&HttpView::<_>::new(&request("")), &mut key).unwrap();
        let charge = Charge::of(budget(), key, 1);
        self.store.peek(&charge).now().unwrap().decision(&charge).remaining().unwrap()
    }

    /// How many tokens are spent.
    pub(crate) fn spent(&self) -> u64 {
        10_000 - self.left()
    }
}

pub(crate) fn request(body: &str) -> Request<Full<Bytes>> {
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    Request::post("/v1/chat/completions").header("x-api-key", "alice").body(body).unwrap()
}

/// A stream in the form of OpenAI's API that reports `prompt` and `completion`.
pub(crate) fn openai(prompt: u64, completion: u64) -> Stream {
    let total = prompt + completion;
    Stream::of(&[
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n",
        &format!(
            "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt},\
             \"completion_tokens\":{completion},\"total_tokens\":{total}}}}}\n\n"
        ),
        "data: [DONE]\n\n",
    ])
}
