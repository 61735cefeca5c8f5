use super::{End, Progress, Sink};

/// Unpacks zstd (RFC 8878). A body that begins as one and is none may be one that another service can read, with a larger
/// window or a dictionary.
#[cfg(any(feature = "actix", feature = "tower"))]
pub(super) fn read(packed: &[u8], sink: &mut Sink<'_>) -> Progress {
    use zstd_safe::{DCtx, InBuffer, OutBuffer};

    use super::PIECE;

    let spent = |read| Progress { read, end: End::Spent };
    let Some(mut decoder) = DCtx::try_create() else { return spent(0) };
    let mut packed = InBuffer::around(packed);
    loop {
        let mut piece = [0; PIECE];
        let mut out = OutBuffer::around(&mut piece[..]);
        let result = decoder.decompress_stream(&mut out, &mut packed);
        let is_full = out.pos() == PIECE;
        if !sink.read(out.as_slice()) || result.is_err() {
            return spent(packed.pos());
        }
        // What is cut off is not there to be read. Behind a frame, another one may follow.
        if packed.pos() == packed.src.len() && !is_full {
            return Progress { read: packed.pos(), end: End::Read };
        }
    }
}

/// Without the layers, nothing of the kind is compiled.
#[cfg(not(any(feature = "actix", feature = "tower")))]
pub(super) fn read(_: &[u8], _: &mut Sink<'_>) -> Progress {
    Progress { read: 0, end: End::Spent }
}
