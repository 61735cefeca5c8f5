use std::collections::HashMap;
use std::io;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The length, the type, the flags and the stream of a frame.
const HEAD: usize = 9;

/// How often the server is told that its data has arrived, in bytes.
const TOLD: u32 = 16 * 1024;

/// gRPC over HTTP/2, as far as one method needs it.
#[derive(Debug)]
pub(super) struct Http2 {
    /// The fields of the first request, which the server keeps in its table.
    first_fields: Vec<u8>,
    messages: Vec<Vec<u8>>,
    next: usize,
    asked: u32,
    /// A message of gRPC begins with its length.
    expected: Vec<u8>,
    /// Streams with the beginning of their data.
    begun: HashMap<u32, Vec<u8>>,
    /// Data that the server has not been told of.
    untold: u32,
}

/// The same fields by their indexes: POST, http, and the last four that were sent.
const LATER_FIELDS: [u8; 6] = [0x83, 0x86, 0x80 | 65, 0x80 | 64, 0x80 | 63, 0x80 | 62];

impl Http2 {
    /// Writes the beginning of the connection to `out`.
    pub(super) fn new(
        path: &str,
        messages: &[Vec<u8>],
        expected: &[u8],
        at: usize,
        out: &mut Vec<u8>,
    ) -> Self {
        out.extend_from_slice(PREFACE);
        frame(out, SETTINGS, 0, 0, &[]);
        let mut fields = vec![0x83, 0x86];
        // Literals that the server's table takes: the name by its index, then the value.
        for (name, value) in [(4, path), (1, "localhost"), (31, "application/grpc")] {
            fields.extend([0x40 | name, value.len() as u8]);
            fields.extend_from_slice(value.as_bytes());
        }
        fields.extend_from_slice(b"\x40\x02te\x08trailers");
        let framed = |message: &Vec<u8>| {
            let mut framed = vec![0];
            framed.extend((message.len() as u32).to_be_bytes());
            framed.extend_from_slice(message);
            framed
        };
        Self {
            first_fields: fields,
            messages: messages.iter().map(framed).collect(),
            next: at,
            asked: 0,
            expected: expected.to_vec(),
            begun: HashMap::new(),
            untold: 0,
        }
    }

    pub(super) fn ask(&mut self, out: &mut Vec<u8>) {
        let stream = 2 * self.asked + 1;
        let fields = if self.asked == 0 { &*self.first_fields } else { &LATER_FIELDS };
        frame(out, HEADERS, END_HEADERS, stream, fields);
        let message = &self.messages[self.next % self.messages.len()];
        frame(out, DATA, END_STREAM, stream, message);
        self.asked += 1;
        self.next += 1;
    }

    /// Takes whole frames off `received`.
    pub(super) fn read(
        &mut self,
        received: &mut Vec<u8>,
        out: &mut Vec<u8>,
        answered: &mut impl FnMut(u64),
    ) -> io::Result<()> {
        let mut read = 0;
        while let Some((head, rest)) = received[read..].split_first_chunk::<HEAD>() {
            let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *head;
            let length = u32::from_be_bytes([0, l0, l1, l2]) as usize;
            let Some(payload) = rest.get(..length) else { break };
            let stream = u32::from_be_bytes([s0, s1, s2, s3]);
            match kind {
                SETTINGS | PING if flags & ACK == 0 => {
                    frame(out, kind, ACK, 0, if kind == PING { payload } else { &[] });
                }
                DATA => {
                    self.untold += length as u32;
                    let data = self.begun.entry(stream).or_default();
                    data.extend_from_slice(payload);
                }
                RST_STREAM | GOAWAY => {
                    return Err(io::Error::other(format!("the server ends with {payload:?}")));
                }
                _ => {}
            }
            if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                let data = self.begun.remove(&stream).unwrap_or_default();
                if data.get(5..).is_none_or(|message| !message.starts_with(&self.expected)) {
                    return Err(io::Error::other(format!("{data:?} is not the expected answer")));
                }
                answered(u64::from(stream / 2));
            }
            read += HEAD + length;
        }
        received.drain(..read);
        if self.untold >= TOLD {
            frame(out, WINDOW_UPDATE, 0, 0, &self.untold.to_be_bytes());
            self.untold = 0;
        }
        Ok(())
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(frames: impl FnOnce(&mut Vec<u8>)) -> io::Result<Vec<u64>> {
        let mut out = Vec::new();
        let mut http = Http2::new("/a/b", &[b"m".to_vec()], b"\x08\x01", 0, &mut out);
        let (mut received, mut numbers) = (Vec::new(), Vec::new());
        frames(&mut received);
        http.read(&mut received, &mut out, &mut |number| numbers.push(number))?;
        Ok(numbers)
    }

    #[test]
    fn a_call_is_answered_when_its_stream_ends_after_the_expected_message() {
        let numbers = answers(|received| {
            frame(received, SETTINGS, 0, 0, &[]);
            frame(received, HEADERS, END_HEADERS, 3, &[0x88]);
            frame(received, DATA, 0, 3, b"\0\0\0\0\x02\x08\x01");
            frame(received, HEADERS, END_HEADERS | END_STREAM, 3, &[0x88]);
            received.extend([0, 0, 9]);
        });
        assert_eq!(numbers.unwrap(), [1]);
    }

    #[test]
    fn a_call_that_ends_without_the_expected_message_is_an_error() {
        let ended = |data: &'static [u8]| {
            answers(|received| {
                frame(received, DATA, 0, 1, data);
                frame(received, HEADERS, END_HEADERS | END_STREAM, 1, &[0x88]);
            })
        };
        assert!(ended(b"\0\0\0\0\x02\x08\x02").is_err());
        assert!(ended(b"").is_err());
        assert!(answers(|received| frame(received, RST_STREAM, 0, 1, &[0; 4])).is_err());
    }
}
