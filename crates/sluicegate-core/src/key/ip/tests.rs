use proptest::prelude::*;

use super::*;
use crate::key::testing::{Request, key, missing};

const XFF: &str = "x-forwarded-for";

fn address(ip: &Ip, request: &Request) -> String {
    ip.address(request).expect("an address").to_string()
}

fn behind() -> Ip {
    Ip::behind(["10.0.0.0/8", "2001:db8:ffff::/48"])
}

#[test]
fn ipv4_mapped_ipv6_is_ipv4() {
    let peer = |peer: &str| key(&Ip::peer(), &Request::from(peer));
    assert_eq!(peer("::ffff:1.2.3.4"), peer("1.2.3.4"));
    assert_ne!(peer("::ffff:9.9.9.9"), peer("1.2.3.4"));

    let request = Request::from("::ffff:10.0.0.1").header(XFF, "::ffff:192.0.2.1");
    assert_eq!(address(&behind(), &request), "192.0.2.1");
}

/// From the right, over all lines, to the first address that is no proxy's.
#[test]
fn the_client_is_the_nearest_address_that_is_no_proxys() {
    let peer = |ip| (ip, "192.0.2.1", &["192.0.2.9, 10.0.0.1"][..], "192.0.2.1");
    type Lines = &'static [&'static str];
    let from = |lines: Lines, client| (behind(), "10.0.0.1", lines, client);
    let counted = |hops, lines: Lines, client| (Ip::hops(hops), "10.0.0.1", lines, client);
    let three: Lines = &["192.0.2.1, 192.0.2.2", "192.0.2.3"];
    for (ip, peer, lines, client) in [
        // Headers of a peer that is no proxy are not looked at.
        peer(Ip::peer()),
        peer(Ip::hops(0)),
        peer(Ip::behind("")),
        peer(behind()),
        from(&["6.6.6.6, 192.0.2.1, 10.0.0.3, 10.0.0.2"], "192.0.2.1"),
        from(&["6.6.6.6", "192.0.2.1:5678, 10.0.0.3", "[2001:db8:ffff::1]:443"], "192.0.2.1"),
        // Where all are proxies, the farthest is the client.
        from(&["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        from(&[], "10.0.0.1"),
        counted(1, three, "192.0.2.3"),
        counted(2, three, "192.0.2.2"),
        counted(3, three, "192.0.2.1"),
        // A request that did not come through all counted proxies is charged to its peer.
        counted(2, &["unknown, 192.0.2.2"], "10.0.0.1"),
        counted(3, &["unknown, 192.0.2.2"], "10.0.0.1"),
        counted(64, &["unknown, 192.0.2.2"], "10.0.0.1"),
    ] {
        let request = lines.iter().fold(Request::from(peer), |it, line| it.header(XFF, line));
        assert_eq!(address(&ip, &request), client, "{ip:?}: {lines:?}");
    }
}

#[test]
fn a_hop_that_does_not_tell_its_address_ends_the_walk_at_the_last_proxy() {
    for hop in ["unknown", "_hidden", "", "1.2.3.4.5", "192.0.2.1:x", "for=192.0.2.1"] {
        let request = Request::from("10.0.0.1").header(XFF, format!("192.0.2.1, {hop}, 10.0.0.2"));
        assert_eq!(address(&behind(), &request), "10.0.0.2", "{hop}");
    }
}

#[test]
fn the_walk_is_bounded() {
    let request = (0..200).fold(Request::from("10.0.0.1"), |request, hop| {
        request.header(XFF, format!("10.0.1.{hop}"))
    });
    assert_eq!(address(&behind(), &request), "10.0.1.136");
}

#[test]
fn exactly_one_header_is_read_chosen_by_name() {
    let request = Request::from("10.0.0.1")
        .header(XFF, "192.0.2.1")
        .header("forwarded", "for=\"[2001:db8::7]:1\", for=10.0.0.2")
        .header("x-real-ip", "192.0.2.3");
    assert_eq!(address(&behind(), &request), "192.0.2.1");
    assert_eq!(address(&behind().header("Forwarded"), &request), "2001:db8::7");
    assert_eq!(address(&behind().header("x-real-ip"), &request), "192.0.2.3");
    assert_eq!(address(&behind().header("cf-connecting-ip"), &request), "10.0.0.1");
}

#[test]
fn an_ipv6_address_is_cut_to_64_bits_unless_said_otherwise() {
    let (a, b) = (Request::from("2001:db8::1"), Request::from("2001:db8::2"));
    let c = Request::from("2001:db8:0:1::1");
    assert_eq!(key(&Ip::peer(), &a), key(&Ip::peer(), &b));
    assert_ne!(key(&Ip::peer(), &a), key(&Ip::peer(), &c));
    let (narrow, wide) = (Ip::peer().prefix_v6(128), Ip::peer().prefix_v6(56));
    assert_ne!(key(&narrow, &a), key(&narrow, &b));
    assert_eq!(key(&wide, &a), key(&wide, &c));
    for bits in [56, 60] {
        assert_ne!(key(&Ip::peer().prefix_v6(bits), &a), key(&Ip::peer(), &a));
    }
    assert_eq!(address(&Ip::peer(), &a), "2001:db8::1");
}

#[test]
fn an_ipv4_address_counts_whole_unless_said_otherwise() {
    let (a, b) = (Request::from("192.0.2.1"), Request::from("192.0.2.2"));
    assert_ne!(key(&Ip::peer(), &a), key(&Ip::peer(), &b));
    let wide = Ip::peer().prefix_v4(24);
    assert_eq!(key(&wide, &a), key(&wide, &b));
    let all = Ip::peer().prefix_v4(0).prefix_v6(0);
    assert_eq!(key(&all, &a), key(&all, &b));
    assert_ne!(key(&all, &a), key(&all, &Request::from("::1")));
}

#[test]
fn no_peer_is_the_servers_to_mend() {
    let request = Request::default().header(XFF, "192.0.2.1");
    for ip in [Ip::peer(), behind(), Ip::hops(1)] {
        let missing = missing(&ip, &request);
        assert!(missing.is_server());
        assert_eq!(missing.to_string(), "the server lacks the peer address: use the socket");
    }
}

#[test]
fn proxies_may_be_a_finished_list() {
    let request = Request::from("127.0.0.1").header(XFF, "192.0.2.1");
    assert_eq!(address(&Ip::behind(Proxies::private()), &request), "192.0.2.1");
}

#[test]
fn what_cannot_work_panics_in_a_sentence() {
    type Make = fn() -> Ip;
    let wrong: [(Make, &str); 4] = [
        (|| Ip::behind(["10.0.0.1/8"]), "the trusted proxy `10.0.0.1/8` has bits set beyond its"),
        (|| Ip::peer().prefix_v4(33), "an IPv4 address has no 33 bits"),
        (|| Ip::peer().header(XFF), "`Ip::peer()` reads no header"),
        (|| behind().header("x real ip"), "`x real ip` is no header name"),
    ];
    for (make, expected) in wrong {
        let panic = std::panic::catch_unwind(make).expect_err(expected);
        let fixed = || panic.downcast_ref().copied();
        let sentence = panic.downcast_ref().map(String::as_str).or_else(fixed).expect("a sentence");
        assert!(sentence.contains(expected), "{sentence}");
    }
}

/// What a client may put into a header: random bytes, and text that looks like hops.
fn spoof() -> impl Strategy<Value = Vec<u8>> {
    let hop = prop::sample::select(vec![
        "10.0.0.9",
        "6.6.6.6",
        "for=6.6.6.6",
        "for=\"[2001:db8::6]",
        "\"",
        "\\\"",
        "\\",
        ",",
        ";",
        "unknown",
        "for=10.0.0.9;by=\"",
    ]);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        prop::collection::vec(hop, 0..8).prop_map(|hops| hops.join(", ").into_bytes()),
    ]
}

/// A hop as a proxy writes it into `header`.
fn written(header: &str, address: IpAddr, style: u8) -> String {
    match (header, address, style % 3) {
        ("forwarded", IpAddr::V4(v4), 0) => format!("for={v4}"),
        ("forwarded", IpAddr::V4(v4), 1) => format!("For=\"{v4}:80\";by=\"_a,b\""),
        ("forwarded", IpAddr::V4(v4), _) => format!("proto=http;for={v4};host=\"a\\\"b\""),
        ("forwarded", IpAddr::V6(v6), 0) => format!("for=\"[{v6}]\""),
        ("forwarded", IpAddr::V6(v6), _) => format!("by=_x;for=\"[{v6}]:443\""),
        (_, address, 0) => address.to_string(),
        (_, IpAddr::V4(v4), _) => format!("{v4}:5678"),
        (_, IpAddr::V6(v6), _) => format!("[{v6}]:443"),
    }
}

fn outside() -> impl Strategy<Value = IpAddr> {
    any::<IpAddr>().prop_filter("a client", |address| {
        !Proxies::try_from(["10.0.0.0/8", "2001:db8:ffff::/48"]).unwrap().contains(*address)
    })
}

proptest! {
    #[test]
    fn a_spoofed_prefix_never_changes_the_key(
        header in prop::sample::select(vec!["forwarded", XFF]),
        client in outside(),
        proxies in prop::collection::vec((any::<u8>(), any::<bool>(), any::<u8>()), 0..5),
        style: u8,
        lines in prop::collection::vec(spoof(), 0..3),
        prefix in prop::option::of(spoof()),
    ) {
        // Some proxies start a line of their own. The client's line is the first.
        let mut honest = vec![written(header, client, style).into_bytes()];
        for (host, own_line, style) in &proxies {
            let hop = written(header, [10, 0, 0, *host].into(), *style);
            if *own_line {
                honest.push(hop.into_bytes());
            } else {
                honest.last_mut().unwrap().extend_from_slice(format!(", {hop}").as_bytes());
            }
        }
        let request = |lines: &[Vec<u8>]| {
            lines.iter().fold(Request::from("10.1.1.1"), |request, line| request.header(header, line))
        };
        let mut spoofed = lines;
        spoofed.extend(honest.iter().cloned());
        if let Some(mut prefix) = prefix {
            let first = spoofed.len() - honest.len();
            prefix.extend_from_slice(b", ");
            prefix.append(&mut spoofed[first]);
            spoofed[first] = prefix;
        }
        let (honest, spoofed) = (request(&honest), request(&spoofed));

        let named = behind().header(header);
        prop_assert_eq!(named.address(&spoofed).unwrap(), client.to_canonical());
        prop_assert_eq!(key(&named, &spoofed), key(&named, &honest));
        let counted = Ip::hops(proxies.len() + 1).header(header);
        prop_assert_eq!(counted.address(&spoofed).unwrap(), client.to_canonical());
    }

    #[test]
    fn a_peer_that_is_no_proxy_is_never_asked(
        peer in outside(),
        header in prop::sample::select(vec!["forwarded", XFF]),
        lines in prop::collection::vec(spoof(), 0..3),
    ) {
        let bare = Request { peer: Some(peer), ..Request::default() };
        let request = lines.iter().fold(bare, |request, line| request.header(header, line));
        prop_assert_eq!(behind().header(header).address(&request).unwrap(), peer.to_canonical());
    }

    #[test]
    fn no_input_panics(
        peer in prop::option::of(any::<IpAddr>()),
        header in prop::sample::select(vec!["forwarded", XFF, "cookie", "x"]),
        lines in prop::collection::vec(spoof(), 0..4),
        text in any::<String>(),
        prefix in 0_u8..=32,
    ) {
        use crate::key::{Cookie, First, Header, Host, Path, Query};

        let bare = Request {
            peer,
            path: text.clone(),
            query: Some(text.clone()),
            host: Some(text.clone()),
            ..Request::default()
        };
        let request = lines.iter().fold(bare, |request, line| request.header(header, line));
        let mut buf = KeyBuf::new();
        for ip in [behind(), behind().header("forwarded"), Ip::hops(2)] {
            let _ = ip.prefix_v4(prefix).prefix_v6(prefix * 4).write(&request, &mut buf);
        }
        let _ = First((Header("x"), Cookie("a"), Query("a"), Host)).write(&request, &mut buf);
        let _ = Path.write(&request, &mut buf);
        let _ = text.parse::<Proxies>();
    }
}

#[test]
fn clients_behind_a_translator_are_told_apart() {
    let request = |peer: &str| Request::from(peer);
    let plain = Ip::peer();
    let translated = Ip::peer().nat64(["64:ff9b::/96", "64:ff9b:1::/48"]);
    let (one, other) = (request("64:ff9b::192.0.2.1"), request("64:ff9b::192.0.2.2"));
    assert_eq!(key(&plain, &one), key(&plain, &other));
    assert_ne!(key(&translated, &one), key(&translated, &other));
    for same in ["192.0.2.1", "::ffff:192.0.2.1", "64:ff9b:1:c000:2:100::"] {
        assert_eq!(key(&translated, &one), key(&translated, &request(same)), "{same}");
    }
    // A header may contain such an address too. All other addresses stay as they are.
    let request = Request::from("10.0.0.1").header(XFF, "64:ff9b::c000:201");
    assert_eq!(address(&behind().nat64(["64:ff9b::/96"]), &request), "192.0.2.1");
    assert_eq!(address(&translated, &Request::from("2001:db8::1")), "2001:db8::1");
    let within = translated.within(["192.0.2.0/24"]).unwrap();
    assert!(crate::condition::Condition::holds(&within, &one).unwrap());
}

#[test]
fn what_is_no_prefix_of_a_translator_is_named() {
    let error = Ip::peer().try_nat64(["64:ff9b::/96", "192.0.2.0/24"]).unwrap_err();
    assert_eq!(error.entry(), "192.0.2.0/24");
    assert!(std::panic::catch_unwind(|| Ip::peer().nat64(["64:ff9b::/97"])).is_err());
}

#[cfg(feature = "tracing")]
#[test]
fn a_proxy_that_does_not_write_the_header_is_told_once() {
    use crate::observe::report::testing::logged;

    for ip in [behind(), Ip::hops(1)] {
        let told = |request: &Request| logged(|| drop(address(&ip, request)));
        let clone = ip.clone();
        let with_another = Request::from("10.0.0.1").header("x-real-ip", "192.0.2.1");
        // A header that cannot be read is present, and a client may have sent it.
        assert_eq!(told(&Request::from("10.0.0.1").header(XFF, "192.0.2.1")).len(), 0);
        assert_eq!(told(&Request::from("10.0.0.1").header(XFF, "unknown")).len(), 0);
        let first = told(&with_another);
        assert_eq!(first.len(), 1, "{first:?}");
        assert!(
            first[0].contains("x-forwarded-for") && first[0].contains("Ip::header"),
            "{first:?}"
        );
        assert_eq!(told(&with_another).len(), 0);
        assert_eq!(logged(|| drop(address(&clone, &with_another))).len(), 0);
    }
    // This peer is not a trusted proxy.
    assert_eq!(logged(|| drop(address(&behind(), &Request::from("192.0.2.1")))).len(), 0);
}
