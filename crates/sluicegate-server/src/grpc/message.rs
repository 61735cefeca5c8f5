use std::future::poll_fn;
use std::pin::pin;

use axum::body::{Bytes, HttpBody};
use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::Status;

/// The largest message that is read, in bytes.
///
/// By default Envoy accepts 60 KiB of header fields, and a request meets 16 limits at most. So all of the fields fit into the
/// descriptor of each limit. To decide about a message of this length takes about a millisecond, because its bytes are
/// compared and hashed; a larger one would make others wait. It is answered too, as one that goes too far.
pub(crate) const LARGEST: usize = 1024 * 1024;

/// Messages of up to this length, in bytes, are read at once.
const SHORT: usize = 64 * 1024;

/// How many bytes of longer messages are in memory at once. Others wait until these are decided.
const ROOM: usize = 64 * LARGEST;

static LONG: Semaphore = Semaphore::const_new(ROOM);

/// A message begins with whether it is compressed, one byte, and its length, four bytes.
pub(super) const PREFIX: usize = 5;

/// What has come of a message.
#[derive(Debug)]
pub(crate) enum Received {
    /// All of it.
    Message(Message),
    /// It has more than [`LARGEST`] bytes, which are not read.
    TooLong,
}

/// A whole message.
#[derive(Debug)]
pub(crate) struct Message {
    bytes: Bytes,
    _room: Option<SemaphorePermit<'static>>,
}

impl Message {
    /// The message without its prefix.
    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes.slice(PREFIX..)
    }
}

impl Received {
    /// Reads the only message of a body.
    ///
    /// # Errors
    ///
    /// The body is not one whole message without compression.
    pub(super) async fn read<B: HttpBody<Data = Bytes>>(body: B) -> Result<Self, Status> {
        let mut body = pin!(body);
        let mut all = Pieces::default();
        let mut room = None;
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let frame = frame.map_err(|_| Status::cancelled("the call was given up"))?;
            let Ok(data) = frame.into_data() else { continue };
            all.add(data);
            let Some(length) = length(all.so_far())? else { continue };
            if length > LARGEST {
                return Ok(Self::TooLong);
            }
            if all.so_far().len() > PREFIX + length {
                return Err(Status::internal("a call is not one whole message"));
            }
            if length > SHORT && room.is_none() {
                // Never closed.
                room = LONG.acquire_many(length as u32).await.ok();
            }
            if body.is_end_stream() {
                break;
            }
        }
        match length(all.so_far())? {
            Some(length) if all.so_far().len() == PREFIX + length => {
                Ok(Self::Message(Message { bytes: all.whole(), _room: room }))
            }
            Some(_) => Err(Status::internal("a call is not one whole message")),
            None => Err(Status::internal("there is no message")),
        }
    }
}

/// The length of the message that begins here, once that has come.
fn length(begin: &[u8]) -> Result<Option<usize>, Status> {
    match begin.first_chunk::<PREFIX>() {
        None => Ok(None),
        Some([0, length @ ..]) => Ok(Some(u32::from_be_bytes(*length) as usize)),
        Some(_) => {
            let what = "a message is compressed in a call that has no grpc-encoding";
            Err(Status::internal(what))
        }
    }
}

/// The data of a body. It nearly always comes as a whole, which is not copied. Pieces are copied to the end of those before,
/// however many there are.
#[derive(Debug, Default)]
struct Pieces {
    first: Bytes,
    all: Vec<u8>,
}

impl Pieces {
    fn add(&mut self, data: Bytes) {
        if self.so_far().is_empty() {
            self.first = data;
            return;
        }
        if self.all.is_empty() {
            self.all = std::mem::take(&mut self.first).into();
        }
        self.all.extend_from_slice(&data);
    }

    fn so_far(&self) -> &[u8] {
        if self.all.is_empty() { &self.first } else { &self.all }
    }

    fn whole(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.into() }
    }
}
