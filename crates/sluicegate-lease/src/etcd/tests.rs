use std::time::Duration;

use super::Etcd;

const MEMBER: [&str; 1] = ["http://127.0.0.1:2379"];

#[tokio::test]
async fn a_candidacy_that_makes_no_sense_is_refused() {
    let long = "x".repeat(1_025);
    for (name, address, lease, text) in [
        ("", "http://one", 2_000, "the name has 0 bytes, but must have from 1 to 1,024"),
        (&*long, "http://one", 2_000, "the name has 1025 bytes, but must have from 1 to 1,024"),
        ("quota", "", 2_000, "the address has 0 bytes, but must have from 1 to 1,024"),
        (
            "a/b",
            "http://one",
            2_000,
            "the name `a/b` has a slash, which separates the parts of a key",
        ),
        (
            "quota",
            "http://one",
            0,
            "the lease is 0ns, but must be a number of whole seconds from 1 to 60",
        ),
        (
            "quota",
            "http://one",
            1_500,
            "the lease is 1.5s, but must be a number of whole seconds from 1 to 60",
        ),
        (
            "quota",
            "http://one",
            61_000,
            "the lease is 61s, but must be a number of whole seconds from 1 to 60",
        ),
    ] {
        let etcd = Etcd::new(MEMBER).unwrap();
        let candidacy = etcd.mastership(name, address).lease(Duration::from_millis(lease));
        assert_eq!(candidacy.stand().unwrap_err().to_string(), text);
    }
}

#[test]
fn without_a_runtime_there_is_no_campaign() {
    let candidacy = Etcd::new(MEMBER).unwrap().mastership("quota", "http://one");
    let error = candidacy.stand().unwrap_err().to_string();
    assert_eq!(error, "there is no tokio runtime to campaign in");
}

#[test]
fn an_address_of_etcd_that_cannot_be_right_is_named() {
    let error = |members: &[&str]| Etcd::new(members).unwrap_err().to_string();
    assert_eq!(error(&[]), "there is no address of etcd");
    assert_eq!(
        error(&["http://10.0.0.1:2379", "etcd://10.0.0.2:2379"]),
        "the address `etcd://10.0.0.2:2379` does not begin with http:// or https://"
    );
}
