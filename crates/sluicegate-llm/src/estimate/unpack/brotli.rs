use brotli_decompressor::{
    Allocator, BrotliDecoderErrorCode, BrotliDecompressStream, BrotliResult, BrotliState,
    StandardAlloc,
};

use super::{End, PIECE, Progress};

/// Unpacks brotli (RFC 7932), to at most about `allowed` bytes. `show` returns `false` if there are too many.
pub(super) fn read(packed: &[u8], allowed: usize, mut show: impl FnMut(&[u8]) -> bool) -> Progress {
    let windows = Windows { largest: allowed.next_power_of_two() + SLACK };
    let mut state = BrotliState::new(windows, StandardAlloc::default(), StandardAlloc::default());
    let (mut left, mut read, mut total) = (packed.len(), 0, 0);
    loop {
        let mut piece = [0; PIECE];
        let (mut room, mut made) = (PIECE, 0);
        let result = BrotliDecompressStream(
            &mut left, &mut read, packed, &mut room, &mut made, &mut piece, &mut total, &mut state,
        );
        if !show(&piece[..made]) {
            return Progress { read, end: End::Spent };
        }
        let end = match result {
            BrotliResult::NeedsMoreOutput => continue,
            // What is cut off is not there to be read.
            BrotliResult::NeedsMoreInput => return Progress { read: packed.len(), end: End::Read },
            BrotliResult::ResultSuccess => End::Read,
            BrotliResult::ResultFailure => match state.error_code {
                BrotliDecoderErrorCode::BROTLI_DECODER_ERROR_ALLOC_RING_BUFFER_1
                | BrotliDecoderErrorCode::BROTLI_DECODER_ERROR_ALLOC_RING_BUFFER_2 => End::Spent,
                _ => End::Failed,
            },
        };
        return Progress { read, end };
    }
}

/// Whether brotli may begin with these bytes. JSON mostly fails at its first one.
pub(super) fn may_begin(first: &[u8]) -> bool {
    read(first, first.len(), |_| true).end != End::Failed
}

/// The decoder takes a little more than its window.
const SLACK: usize = 4 * 1024;

/// Allocates windows up to a bound. The window grows with what is announced, and is filled before anything of it is shown.
/// So without the bound, twenty bytes would be the work of 16 MiB.
struct Windows {
    largest: usize,
}

impl Allocator<u8> for Windows {
    type AllocatedMemory = <StandardAlloc as Allocator<u8>>::AllocatedMemory;

    fn alloc_cell(&mut self, length: usize) -> Self::AllocatedMemory {
        match length > self.largest {
            true => Self::AllocatedMemory::default(),
            false => StandardAlloc::default().alloc_cell(length),
        }
    }

    fn free_cell(&mut self, _: Self::AllocatedMemory) {}
}
