use super::{End, Progress, Sink};

/// Unpacks zstd (RFC 8878). A body that begins as one and is none may be one that another service can read, with a larger
/// window or a dictionary.
#[cfg(any(feature = "actix", feature = "tower"))]
pub(super) fn read(packed: &[u8], sink: &mut Sink<'_>) -> Progress {
    use zstd_safe::{DCtx, InBuffer, OutBuffer};

    use super::PIECE;

    let spent = |read| Progress { read, end: End::Spent };
    let Some(mut decoder) = DCtx::try_create() else { return spent(0) };
    // The decoder names the length of what it reads next: a header, or a block. It gets no more, so that each can be paid.
    let (mut read, mut next) = (0, HEADER);
    loop {
        let mut input = InBuffer::around(&packed[read..packed.len().min(read + next)]);
        let mut piece = [0; PIECE];
        let mut out = OutBuffer::around(&mut piece[..]);
        let result = decoder.decompress_stream(&mut out, &mut input);
        read += input.pos();
        let is_full = out.pos() == PIECE;
        let is_paid = input.pos() == 0 || sink.pay(BLOCK);
        let is_shown = sink.read(out.as_slice());
        let (true, true, Ok(length)) = (is_paid, is_shown, result) else { return spent(read) };
        next = length.max(HEADER);
        // What is cut off is not there to be read. Behind a frame, another one may follow.
        if read == packed.len() && !is_full {
            return Progress { read, end: End::Read };
        }
    }
}

/// What it costs to read a header or a block, in unpacked bytes. The tables of a block of 20 bytes are made in about 3 µs.
#[cfg(any(feature = "actix", feature = "tower"))]
const BLOCK: usize = 512;

/// No header of a frame is shorter.
#[cfg(any(feature = "actix", feature = "tower"))]
const HEADER: usize = 5;

/// Without the layers, nothing of the kind is compiled.
#[cfg(not(any(feature = "actix", feature = "tower")))]
pub(super) fn read(_: &[u8], _: &mut Sink<'_>) -> Progress {
    Progress { read: 0, end: End::Spent }
}
