//! A Unix socket in the file system, which is removed when the server ends.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener as Blocking, UnixStream as BlockingStream};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use super::error::ServerError;
use super::listener::Acceptor;

/// Clients of a socket are programs of this host, and have no address of their own.
pub(super) const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A socket, which is open.
pub(super) struct Socket {
    listener: UnixListener,
    file: File,
}

/// Removes the file when it is dropped.
pub(super) struct File(PathBuf);

impl Socket {
    /// Opens a socket. One that a server has left behind is replaced.
    ///
    /// # Errors
    ///
    /// If there is another file, or another server.
    pub(super) fn bind(path: &Path) -> Result<Self, ServerError> {
        let is_left = std::fs::symlink_metadata(path)
            .is_ok_and(|found| found.file_type().is_socket())
            && BlockingStream::connect(path)
                .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        let removed = if is_left { std::fs::remove_file(path) } else { Ok(()) };
        let listener = removed.and_then(|()| UnixListener::bind(path)).map_err(|error| {
            let what = format!("the gRPC port cannot be opened at {}", path.display());
            ServerError::because(what.as_str(), error)
        })?;
        Ok(Self { listener, file: File(path.to_owned()) })
    }
}

impl Acceptor for Socket {
    type Stream = UnixStream;
    type Blocking = (Blocking, File);

    async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        self.listener.accept().await.map(|(stream, _)| (stream, PEER))
    }

    async fn speaks(stream: &UnixStream) -> bool {
        // A client that has left is served, and that ends at once.
        stream.readable().await.is_ok()
    }

    fn into_blocking(self) -> io::Result<Self::Blocking> {
        Ok((self.listener.into_std()?, self.file))
    }

    fn accept_now((blocking, _): &Self::Blocking) -> io::Result<(UnixStream, SocketAddr)> {
        let (stream, _) = blocking.accept()?;
        stream.set_nonblocking(true)?;
        Ok((UnixStream::from_std(stream)?, PEER))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(&self.0);
    }
}
