use ::http::Uri;

/// Where a request goes: the parts of its URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// `https`; empty where the request does not say.
    pub scheme: &'a str,
    /// `user@host:port`; empty where the request does not say, as in a channel to one server.
    pub authority: &'a str,
    /// `/users/7`, not decoded.
    pub path: &'a str,
    /// What follows the `?`, not decoded.
    pub query: Option<&'a str>,
}

impl<'a> From<&'a Uri> for Target<'a> {
    fn from(uri: &'a Uri) -> Self {
        Self {
            scheme: uri.scheme_str().unwrap_or(""),
            authority: uri.authority().map_or("", |authority| authority.as_str()),
            path: uri.path(),
            query: uri.query(),
        }
    }
}

impl<'a> Target<'a> {
    /// Host and port, without the user, and without the port that the scheme implies.
    pub(super) fn host_and_port(&self) -> (&'a str, Option<&'a str>) {
        // From the end, in one pass: a search for each of the three takes longer than that on so short a text.
        let (mut begin, mut colon, mut is_in_brackets) = (0, None, false);
        for (at, byte) in self.authority.bytes().enumerate().rev() {
            match byte {
                b'@' => {
                    begin = at + 1;
                    break;
                }
                b']' => is_in_brackets = true,
                b':' if !is_in_brackets => colon = Some(at),
                _ => {}
            }
        }
        let (host, port) = match colon {
            Some(colon) => (&self.authority[begin..colon], Some(&self.authority[colon + 1..])),
            None => (&self.authority[begin..], None),
        };
        let implied = match self.scheme {
            "http" | "ws" => "80",
            "https" | "wss" => "443",
            _ => "",
        };
        (host, port.filter(|port| *port != implied))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_that_the_scheme_implies_is_left_out() {
        let parts = |text: &str| {
            let uri: Uri = text.parse().unwrap();
            let (host, port) = Target::from(&uri).host_and_port();
            (host.to_owned(), port.map(str::to_owned))
        };
        assert_eq!(parts("https://a.example:443/"), parts("https://a.example/"));
        assert_eq!(parts("http://u:p@a.example/"), parts("http://a.example:80/"));
        assert_ne!(parts("https://a.example:80/"), parts("https://a.example/"));
        assert_eq!(parts("http://[::1]:3000/"), ("[::1]".to_owned(), Some("3000".to_owned())));
        assert_eq!(parts("http://u:p@[::1]:3000/"), parts("http://[::1]:3000/"));
        assert_eq!(parts("http://u:p@[::1]/"), ("[::1]".to_owned(), None));
        assert_eq!(parts("/path"), (String::new(), None));
    }
}
