use std::error::Error;
use std::fmt;

use http::Uri;
use http::uri::Scheme;

/// Checks the address of a server, such as `http://10.0.0.7:5555`. Without a scheme, it has that of `default`.
pub(crate) fn address(text: &str, default: &Scheme) -> Result<Uri, AddressError> {
    let error = |problem| AddressError { address: text.chars().take(MAX_SHOWN).collect(), problem };
    let uri: Uri = match text.contains("://") {
        true => text.parse().map_err(|_| error(Problem::Unreadable))?,
        false => format!("{default}://{text}").parse().map_err(|_| error(Problem::Unreadable))?,
    };
    if uri.scheme() == Some(&Scheme::HTTPS) && !cfg!(feature = "tls") {
        return Err(error(Problem::NoTls));
    }
    if ![Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&uri.scheme()) {
        return Err(error(Problem::Scheme));
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err(error(Problem::Unreadable));
    }
    Ok(uri)
}

/// How much of a wrong address is shown.
const MAX_SHOWN: usize = 100;

/// An address that a server cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError {
    address: Box<str>,
    problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    Unreadable,
    Scheme,
    NoTls,
    NotEncrypted,
    None,
}

impl AddressError {
    /// There is no address at all.
    pub(super) fn none() -> Self {
        Self { address: Box::default(), problem: Problem::None }
    }

    pub(super) fn not_encrypted(address: &Uri) -> Self {
        Self { address: address.to_string().into(), problem: Problem::NotEncrypted }
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, problem } = self;
        match problem {
            Problem::Unreadable => {
                write!(
                    f,
                    "`{address}` is not the address of a server, such as `http://10.0.0.7:5555`"
                )
            }
            Problem::Scheme => {
                write!(f, "the address `{address}` does not begin with http:// or https://")
            }
            Problem::NoTls => write!(f, "the address `{address}` needs the feature `tls`"),
            Problem::NotEncrypted => {
                write!(f, "the master at `{address}` would be asked without encryption")
            }
            Problem::None => f.write_str("a client needs the address of at least one server"),
        }
    }
}

impl Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_scheme_has_that_of_the_first_server() {
        let uri = address("10.0.0.7:5555", &Scheme::HTTP).unwrap();
        assert_eq!(uri, "http://10.0.0.7:5555");
    }

    #[test]
    fn an_address_that_cannot_be_right_is_named() {
        let error = |text: &str| address(text, &Scheme::HTTP).unwrap_err().to_string();
        assert_eq!(
            error("not an address"),
            "`not an address` is not the address of a server, such as `http://10.0.0.7:5555`"
        );
        assert_eq!(
            error("ftp://host"),
            "the address `ftp://host` does not begin with http:// or https://"
        );
        assert!(error(&"x".repeat(100_000)).len() < 300);
        assert!(error("").contains("is not the address"));
    }
}
