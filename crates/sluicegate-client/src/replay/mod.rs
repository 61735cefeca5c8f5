//! Send a request again whose body can be read only once, such as a call of tonic.
//!
//! [`ReplayLayer`] is around other layers. It reads the body of a request as far as it is there at once, up to a bound. A body
//! that ends within the bound is kept, so that the layers inside can send it again. Others are streamed as before, and sent
//! once. Nothing waits for a body.
//!
//! - A call of gRPC is sent again if its body is one message, as that of a unary call. Streams are never replayed.
//! - Some servers end a call with a failure in the trailers of a response without a message. Where the call may be repeated,
//!   that is told to the layers inside as if it were in the header, where other servers write it. For this the first frame of
//!   the response is awaited, so do not name methods as repeatable whose responses begin long before their first message.

mod body;
mod layer;
mod service;

pub use self::body::ReplayBody;
pub use self::body::{ReplayResponse, ResponseFuture};
pub use self::layer::ReplayLayer;
pub use self::service::{Replay, Sending};
