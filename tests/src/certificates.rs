//! Certificates for tests of TLS.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// An authority that signs certificates.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    /// An authority of this name. Two of one name are told apart by their keys.
    pub fn new(name: &str) -> Self {
        let mut params = params(name, Vec::new());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = key();
        let pem = params.self_signed(&key).expect("a certificate of an authority").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Its own certificate, in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for this host, and its key, in PEM.
    pub fn sign(&self, host: &str) -> (String, String) {
        let key = key();
        let params = params(host, vec![host.to_owned()]);
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        (signed.pem(), key.serialize_pem())
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("random numbers are available")
}

fn params(name: &str, hosts: Vec<String>) -> CertificateParams {
    let mut params = CertificateParams::new(hosts).expect("names of hosts");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
