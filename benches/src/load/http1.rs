use std::io;

/// One request of HTTP/1 with these fields, as bytes.
pub fn request(method: &str, path: &str, fields: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
    for (name, value) in fields {
        text += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() {
        text += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    }
    format!("{text}\r\n{body}").into_bytes()
}

#[derive(Debug)]
pub(super) struct Http1 {
    requests: Vec<Vec<u8>>,
    next: usize,
    expected: String,
    answered: u64,
}

impl Http1 {
    pub(super) fn new(requests: Vec<Vec<u8>>, expected: u16, at: usize) -> Self {
        let expected = format!("HTTP/1.1 {expected} ");
        Self { requests, next: at, expected, answered: 0 }
    }

    pub(super) fn ask(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.requests[self.next % self.requests.len()]);
        self.next += 1;
    }

    /// Takes whole answers off `received`.
    pub(super) fn read(
        &mut self,
        received: &mut Vec<u8>,
        answered: &mut impl FnMut(u64),
    ) -> io::Result<()> {
        while let Some(length) = self.answer(received)? {
            received.drain(..length);
            answered(self.answered);
            self.answered += 1;
        }
        Ok(())
    }

    /// The length of the first answer, if it is there.
    fn answer(&self, received: &[u8]) -> io::Result<Option<usize>> {
        let Some(head) = received.windows(4).position(|end| end == b"\r\n\r\n") else {
            return Ok(None);
        };
        let text = str::from_utf8(&received[..head]).map_err(io::Error::other)?;
        if !text.starts_with(&self.expected) {
            return Err(io::Error::other(format!("{text:?} instead of {:?}", self.expected)));
        }
        let length = text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        let length: usize = length.unwrap_or(0);
        let whole = head + 4 + length;
        Ok((received.len() >= whole).then_some(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart_by_their_length() {
        let mut http = Http1::new(vec![request("GET", "/", &[], "")], 200, 0);
        let mut received =
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n".to_vec();
        let mut numbers = Vec::new();
        http.read(&mut received, &mut |number| numbers.push(number)).unwrap();
        assert_eq!((&*numbers, &*received), (&[0][..], &b"HTTP/1.1 200 OK\r\n"[..]));
        received.extend_from_slice(b"\r\n");
        http.read(&mut received, &mut |number| numbers.push(number)).unwrap();
        assert_eq!((&*numbers, received.len()), (&[0, 1][..], 0));
    }

    #[test]
    fn another_status_is_an_error() {
        let mut http = Http1::new(vec![request("GET", "/", &[], "")], 200, 0);
        let mut received = b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n".to_vec();
        assert!(http.read(&mut received, &mut |_| {}).is_err());
    }
}
