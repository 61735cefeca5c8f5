use std::cell::Cell;
use std::rc::Rc;

use brotli_decompressor::{
    Allocator, BrotliDecoderErrorCode, BrotliDecompressStream, BrotliResult, BrotliState,
    HuffmanCode, SliceWrapper, SliceWrapperMut, StandardAlloc,
};

use super::{End, PIECE, Progress};

/// Unpacks brotli (RFC 7932), to at most about `allowed` bytes. `show` gets these bytes, and the price of the work beyond them,
/// in bytes as well. It returns `false` if that is too much.
pub(super) fn read(
    packed: &[u8],
    allowed: usize,
    mut show: impl FnMut(&[u8], usize) -> bool,
) -> Progress {
    let memory = Memory { largest: allowed.next_power_of_two() + SLACK, map: 0 };
    let mut state = BrotliState::new(memory, StandardAlloc::default(), Tables::default());
    let (mut read, mut total) = (0, 0);
    loop {
        let begin = read;
        let slice = &packed[..packed.len().min(begin + SLICE)];
        let mut left = slice.len() - begin;
        let mut piece = [0; PIECE];
        let (mut room, mut made) = (PIECE, 0);
        let result = BrotliDecompressStream(
            &mut left, &mut read, slice, &mut room, &mut made, &mut piece, &mut total, &mut state,
        );
        let code = CODE + state.alloc_u8.map / CODES_OF_MAP;
        // What is made is paid for by itself.
        let codes = state.alloc_hc.codes.take();
        let work = (BYTE * (read - begin)).saturating_sub(made) + code * codes;
        if !show(&piece[..made], work) {
            return Progress { read, end: End::Spent };
        }
        let end = match result {
            BrotliResult::NeedsMoreOutput => continue,
            BrotliResult::NeedsMoreInput if begin < read && read < packed.len() => continue,
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
    read(first, first.len(), |_, _| true).end != End::Failed
}

/// The decoder takes a little more than its window.
const SLACK: usize = 4 * 1024;

/// How many bytes are read before their work is paid: at most six maps.
const SLICE: usize = 512;

/// What it costs to read a byte, in unpacked ones. A block without contents is a byte, and takes 40 ns.
const BYTE: usize = 4;

/// What it costs to read a prefix code, in unpacked bytes. It has at least twelve bits, and takes 0.2 to 1 µs.
const CODE: usize = 64;

/// A block reads its map of contexts, and at least seven prefix codes with it. An entry of a map takes about 8 ns and no bit:
/// without a price, 2 MiB of blocks that each make a byte took 3 s.
const CODES_OF_MAP: usize = 7;

/// How many entries a map has for each type of block. The decoder allocates a few bytes more than a window, so the length of a
/// window is no multiple of this.
const CONTEXTS: usize = 64;

/// Allocates windows up to a bound. The window grows with what is announced, and is filled before anything of it is shown.
/// So without the bound, twenty bytes would be the work of 16 MiB.
struct Memory {
    largest: usize,
    /// The largest map so far, which the decoder keeps for later blocks.
    map: usize,
}

impl Allocator<u8> for Memory {
    type AllocatedMemory = <StandardAlloc as Allocator<u8>>::AllocatedMemory;

    fn alloc_cell(&mut self, length: usize) -> Self::AllocatedMemory {
        if length % CONTEXTS == 0 && length <= 256 * CONTEXTS {
            self.map = self.map.max(length);
        }
        match length > self.largest {
            true => Self::AllocatedMemory::default(),
            false => StandardAlloc::default().alloc_cell(length),
        }
    }

    fn free_cell(&mut self, _: Self::AllocatedMemory) {}
}

/// Counts the prefix codes that are read. The decoder does not say where blocks begin, but writes a table for each code.
#[derive(Default)]
struct Tables {
    codes: Rc<Cell<usize>>,
}

#[derive(Default)]
struct Table {
    table: <StandardAlloc as Allocator<HuffmanCode>>::AllocatedMemory,
    codes: Option<Rc<Cell<usize>>>,
}

impl Allocator<HuffmanCode> for Tables {
    type AllocatedMemory = Table;

    fn alloc_cell(&mut self, length: usize) -> Table {
        let table = StandardAlloc::default().alloc_cell(length);
        Table { table, codes: Some(Rc::clone(&self.codes)) }
    }

    fn free_cell(&mut self, _: Table) {}
}

impl SliceWrapper<HuffmanCode> for Table {
    fn slice(&self) -> &[HuffmanCode] {
        self.table.slice()
    }
}

impl SliceWrapperMut<HuffmanCode> for Table {
    fn slice_mut(&mut self) -> &mut [HuffmanCode] {
        if let Some(codes) = &self.codes {
            codes.set(codes.get() + 1);
        }
        self.table.slice_mut()
    }
}
