/// Counts messages in the bytes of a body: each has a flag, its length in four bytes, and as many bytes.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Whether the body is one of gRPC-Web, which has its trailers in a frame of its own.
    is_web: bool,
    prefix: [u8; PREFIX],
    /// How many bytes of the prefix are known.
    known: usize,
    /// How many bytes of the message are to come.
    left: usize,
}

const PREFIX: usize = 5;

/// The flag of a frame of trailers.
const TRAILERS: u8 = 0x80;

impl Frames {
    /// The frames of gRPC-Web.
    pub(super) fn of_web() -> Self {
        Self { is_web: true, ..Self::default() }
    }

    /// How many messages begin in `bytes`, which follow those that were read before. A message begins where its length
    /// is known.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> u64 {
        let mut messages = 0;
        while !bytes.is_empty() {
            let (_, rest) = bytes.split_at(self.left.min(bytes.len()));
            self.left -= bytes.len() - rest.len();
            bytes = rest;
            let taken = (PREFIX - self.known).min(bytes.len());
            let (prefix, rest) = bytes.split_at(taken);
            self.prefix[self.known..self.known + taken].copy_from_slice(prefix);
            self.known += taken;
            bytes = rest;
            if self.known == PREFIX {
                let [flag, length @ ..] = self.prefix;
                self.left = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
                self.known = 0;
                messages += u64::from(!self.is_web || flag & TRAILERS == 0);
            }
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of these lengths.
    fn messages(lengths: &[u8]) -> Vec<u8> {
        let message = |&length: &u8| {
            let mut bytes = vec![0, 0, 0, 0, length];
            // Content that looks like prefixes.
            bytes.resize(PREFIX + usize::from(length), 0);
            bytes
        };
        lengths.iter().flat_map(message).collect()
    }

    #[test]
    fn messages_are_counted_however_the_bytes_are_divided() {
        let bytes = messages(&[0, 1, 7, 0, 200, 5]);
        for size in 1..=bytes.len() {
            let mut frames = Frames::default();
            let counted: u64 = bytes.chunks(size).map(|part| frames.read(part)).sum();
            assert_eq!(counted, 6, "in parts of {size}");
        }
    }

    #[test]
    fn trailers_are_a_message_of_nobody_but_grpc_itself() {
        let bytes = [messages(&[3, 3]), vec![0x80, 0, 0, 0, 4, 1, 2, 3, 4]].concat();
        assert_eq!(Frames::of_web().read(&bytes), 2);
        assert_eq!(Frames::default().read(&bytes), 3);
    }

    #[test]
    fn a_length_that_lies_counts_one_message() {
        let mut frames = Frames::default();
        assert_eq!(frames.read(&[0, 255, 255, 255, 255, 1, 2, 3]), 1);
        assert_eq!(frames.read(&[0; 1_000]), 0);
        assert_eq!(Frames::default().read(&[0, 0, 0]), 0);
    }
}
