//! `[listen]` and `[upstream]`.

use sluicegate_config::{Environment, Live, Policies, read_toml};

fn problems(text: &str) -> String {
    let policies = read_toml(text).and_then(|said| Policies::new(&said, &Environment::new()));
    policies.map(|_| ()).expect_err("an error").to_string()
}

#[test]
fn what_is_left_out_has_a_default() {
    let said = read_toml(
        "[listen]\naddress = \"127.0.0.1:80\"\nhead_timeout = \"3 seconds\"\n[upstream]\nurl = \"http://[::1]:3000/\"",
    );
    let policies = Policies::new(&said.unwrap(), &Environment::new()).unwrap();
    let (listen, upstream) = (policies.listen().unwrap(), policies.upstream().unwrap());
    assert_eq!((listen.head_timeout.as_secs(), listen.idle_timeout.as_secs()), (3, 75));
    assert_eq!((listen.fields, listen.underscores), (200, false));
    assert_eq!(listen.upgrades, ["websocket"]);
    assert_eq!((upstream.authority.as_str(), upstream.requests), ("[::1]:3000", 10_000));
    let none = Policies::new(&read_toml("rules = []").unwrap(), &Environment::new()).unwrap();
    assert!(none.listen().is_none() && none.upstream().is_none());
}

#[test]
fn everything_wrong_is_said_at_once() {
    let said = problems(
        "[listen]\naddress = \"here\"\nhead = 1\nfields = 15\nconnections = 0\nidle_timeout = \"long\"\nupgrades = \"h2c\"\n\
         [upstream]\nurl = \"http://a/b\"\nrequests = 0",
    );
    for (place, what) in [
        ("2:11: listen.address", "0.0.0.0:8080"),
        ("3:8: listen.head", "8192"),
        ("4:10: listen.fields", "16 to 1000"),
        ("5:15: listen.connections", "0 is not from 1"),
        ("6:16: listen.idle_timeout", "`long` is not a duration"),
        ("7:12: listen.upgrades", "h2c"),
        ("9:7: upstream.url", "without a path"),
        ("10:12: upstream.requests", "0 is not from 1"),
    ] {
        let line = said.lines().find(|line| line.starts_with(place));
        assert!(line.is_some_and(|line| line.contains(what)), "{place}: {said}");
    }
}

#[test]
fn an_application_may_speak_tls() {
    let read = |text: &str| Policies::new(&read_toml(text).unwrap(), &Environment::new()).unwrap();
    let plain = read("[upstream]\nurl = \"http://a\"");
    assert_eq!(plain.upstream().unwrap().tls, None);
    let system = read("[upstream]\nurl = \"https://a\"");
    let tls = system.upstream().unwrap().tls.clone().unwrap();
    assert_eq!((tls.authorities, tls.server_name, tls.identity), (None, None, None));
    let own = read(
        "[upstream]\nurl = \"https://10.0.0.1:8443\"\n\
         tls = { authorities = \"ca.pem\", server_name = \"app\", certificate = \"c.pem\", key = \"k.pem\" }",
    );
    let tls = own.upstream().unwrap().tls.clone().unwrap();
    assert_eq!(tls.authorities.unwrap().to_str(), Some("ca.pem"));
    assert_eq!(tls.server_name.as_deref(), Some("app"));
    let (certificate, key) = tls.identity.unwrap();
    assert_eq!((certificate.to_str(), key.to_str()), (Some("c.pem"), Some("k.pem")));
}

#[test]
fn settings_of_tls_that_do_not_fit_are_said() {
    for (url, tls, place, what) in [
        ("http://a", "authorities = \"ca.pem\"", "upstream.tls", "`https://`"),
        ("https://a", "certificate = \"c.pem\"", "upstream.tls", "both"),
        ("https://a", "server_name = \"a b\"", "upstream.tls.server_name", "a host name"),
        ("https://a", "ca = \"ca.pem\"", "upstream.tls", "`authorities`"),
    ] {
        let said = problems(&format!("[upstream]\nurl = \"{url}\"\ntls = {{ {tls} }}"));
        assert!(said.contains(place) && said.contains(what), "{tls}: {said}");
    }
}

#[test]
fn only_a_host_and_a_port_are_an_application() {
    for url in [
        "a:3000",
        "https://a/b",
        "ftp://a",
        "http://",
        "https://",
        "http://u@a",
        "http://a:0",
        "http://a b",
        "http://a:1:2",
    ] {
        let said = problems(&format!("[upstream]\nurl = \"{url}\""));
        assert!(said.contains("upstream.url"), "{url}: {said}");
    }
}

#[test]
fn a_proxy_refuses_a_file_that_is_none_of_a_proxy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policies.toml");
    let (listen, upstream) =
        ("[listen]\naddress = \"127.0.0.1:80\"\n", "[upstream]\nurl = \"http://[::1]:3000\"\n");
    let write = |text: &str| std::fs::write(&path, format!("rules = []\n{text}")).unwrap();
    write(&format!("{listen}{upstream}"));
    // Another service may have the file of a proxy, and does not need what only a proxy reads.
    let other = Live::open(&path, Environment::new()).unwrap();
    write(listen);
    other.reload().unwrap();
    write(&format!("{listen}{upstream}"));
    let live = Live::open(&path, Environment::new()).unwrap();
    live.proxied();
    for (text, section) in [(listen, "upstream"), (upstream, "listen")] {
        write(text);
        let pending = live.pending().unwrap_err().to_string();
        let refused = live.reload().unwrap_err().to_string();
        let said = format!("{section}: `[{section}]` cannot be removed while the proxy runs");
        assert!(refused.ends_with(&said), "{refused}");
        assert_eq!(pending, refused);
        assert!(live.policies().upstream().is_some() && live.policies().listen().is_some());
    }
    live.replace(Policies::new(&read_toml("rules = []").unwrap(), &Environment::new()).unwrap())
        .unwrap_err();
}
