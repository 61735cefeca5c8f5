use super::*;
use crate::key::testing::Request;
use crate::key::{
    Claim, Claims, Cookie, Extension, Global, Header, Host, Ip, Method, Path, Query, Route,
};
use crate::limit::Limit;
use crate::rule::Rule;
use crate::store::charge::Charge;

/// Whether a rule under the condition applies.
fn holds(condition: impl Condition<Request>, request: &Request) -> bool {
    let mut charge = Charge::new();
    let rule = Limit::per_minute(1).by(Global).when(condition);
    rule.charge(request, &mut charge).expect("a key");
    !charge.is_empty()
}

#[test]
fn methods_are_compared_exactly() {
    let request = |method: &str| Request { method: method.into(), ..Request::default() };
    assert!(holds(Method.is("POST"), &request("POST")));
    assert!(!holds(Method.is("POST"), &request("post")));
    assert!(holds(Method.is_any(["GET", "HEAD"]), &request("HEAD")));
    assert!(!holds(Method.is_any(vec![String::from("POST")]), &request("HEAD")));
    assert!(!holds(Method.is("GET"), &request("get")));
}

#[test]
fn what_no_request_can_have_is_an_error_when_it_is_made() {
    for method in ["", "GET ", "GE T", "GET,T", "G\u{395}T", "GET\u{200b}", "get", "*", "P*"] {
        assert!(Method.try_is_any([method]).is_err(), "{method:?}");
        assert!(std::panic::catch_unwind(|| Method.is(method)).is_err(), "{method:?}");
    }
    assert!(Method.try_is_any(Vec::<String>::new()).is_err());
    for host in ["", "a b", "http://a", "b\u{fc}cher.example", "::1", "*.example.com"] {
        assert!(std::panic::catch_unwind(|| Host.is(host)).is_err(), "{host:?}");
    }
    for host in ["example.com:8080", "EXAMPLE.com.", "[::1]", "127.0.0.1", "my_host-1"] {
        assert!(Host.try_matches(host).is_ok(), "{host:?}");
    }
    assert!(Path.try_matches(&format!("/{}", "a".repeat(9_000))).is_err());
    let mut charge = Charge::new();
    let rule = Limit::per_minute(1).by(Global).when(Header("x y").equals("1"));
    assert!(rule.charge(&Request::default(), &mut charge).unwrap_err().is_server());
}

/// It is unknown which of two values a handler reads.
#[test]
fn a_second_value_is_no_way_to_an_exception() {
    let query = |pairs: &str| Request { query: Some(pairs.into()), ..Request::default() };
    let cookie = |pairs: &str| Request::default().header("cookie", pairs);
    let header = |[one, two]: [&str; 2]| Request::default().header("x", one).header("x", two);
    for values in [["a", "b"], ["b", "a"], ["a", ""], ["", "a"], ["a", "a"]] {
        let [one, two] = values;
        let (pairs, cookies) = (format!("x={one}&x={two}"), format!("x={one}; x={two}"));
        let is_one = one == two;
        assert_eq!(holds(Not(Query("x").equals("a")), &query(&pairs)), !is_one, "{values:?}");
        assert_eq!(holds(Not(Cookie("x").equals("a")), &cookie(&cookies)), !is_one, "{values:?}");
        assert_eq!(holds(Not(Header("x").equals("a")), &header(values)), !is_one, "{values:?}");
        let is_there = values.iter().all(|value| !value.is_empty());
        assert_eq!(holds(Not(Query("x").is_present()), &query(&pairs)), !is_there, "{values:?}");
        assert_eq!(
            holds(Not(Cookie("x").is_present()), &cookie(&cookies)),
            !is_there,
            "{values:?}"
        );
        assert_eq!(holds(Not(Header("x").is_present()), &header(values)), !is_there, "{values:?}");
        // A limit on one of them is not missed either.
        assert!(holds(Query("x").equals("a"), &query(&pairs)), "{values:?}");
    }
    let host = Request { host: Some("EXAMPLE.com:80".into()), ..Request::default() };
    assert!(!holds(Not(Header("host").equals("example.com")), &host));
}

#[test]
fn head_is_no_way_around_a_limit_on_get() {
    let request = |method: &str| Request { method: method.into(), ..Request::default() };
    assert!(holds(Method.is("GET"), &request("HEAD")));
    assert!(holds(Method.is_any(["POST", "GET"]), &request("HEAD")));
    assert!(!holds(Method.is("HEAD"), &request("GET")));
    // It does not reach an exception either.
    assert!(holds(Not(Method.is("GET")), &request("HEAD")));
    assert!(!holds(Not(Method.is("GET")), &request("GET")));
    assert!(!holds(Not(Method.is("HEAD")), &request("HEAD")));
    assert!(holds(Not(Not(Method.is("GET"))), &request("HEAD")));
}

#[test]
fn a_route_is_the_pattern_that_matched() {
    let request = Request { route: Some("/users/{id}".into()), ..Request::default() };
    assert!(holds(Route.is("/users/{id}"), &request));
    assert!(!holds(Route.is("/users/{name}"), &request));
    assert!(!holds(Route.is("/users/{id}"), &Request::default()));
}

/// In front of the router, nothing evaluates what is in the braces. The condition must not hold for nobody.
#[test]
fn a_route_in_any_dialect_is_compared_with_the_path_where_no_route_is_known() {
    let request = |path: &str| Request { path: path.into(), ..Request::default() };
    for (route, path) in [
        ("/files/{tail:.*}", "/files/a/b"),
        ("/files/{tail:.*}", "/files"),
        ("/files/{path:path}", "/files/a/b"),
        ("/files/{path:[^{}]+/[a-z]+}", "/files/a/b"),
        ("/files/{rest...}", "/files/a/b"),
        ("/files/{proxy+}", "/files/a/b"),
        ("/files/{**rest}", "/files/a/b"),
        ("/users/{id:[0-9]{3}}", "/users/123"),
        ("/users/{id:[0-9]+}", "/users/123"),
        ("/users/{id}.json", "/users/1.json"),
        ("/users/user-{id}/x", "/users/user-1/x"),
    ] {
        assert!(holds(Route.is(route), &request(path)), "{route} {path}");
    }
    for (route, path) in [
        ("/users/{id:[0-9]+}", "/users/1/posts"),
        ("/users/{id:int}/posts", "/users/1/friends"),
        ("/files/{tail:.*}", "/other/a"),
    ] {
        assert!(!holds(Route.is(route), &request(path)), "{route} {path}");
    }
}

#[test]
fn where_no_route_is_known_the_path_is_compared() {
    let unrouted = |path: &str| Request { path: path.into(), ..Request::default() };
    for path in ["/users/7", "/%75sers/7", "//users/7/"] {
        assert!(holds(Route.is("/users/{id}"), &unrouted(path)), "{path}");
        // It does not make exceptions, because it is unknown which route will answer.
        assert!(holds(Not(Route.is("/users/{id}")), &unrouted(path)), "{path}");
    }
    assert!(!holds(Route.is("/users/{id}"), &unrouted("/posts/7")));
    let routed = Request { route: Some("/{any}".into()), ..unrouted("/users/7") };
    assert!(!holds(Route.is("/users/{id}"), &routed));
}

fn host(host: &str) -> Request {
    Request { host: Some(host.into()), ..Request::default() }
}

#[test]
fn a_condition_by_the_header_host_holds_in_every_version() {
    let condition = || Header("Host").equals("example.com");
    // HTTP/2 and targets with a host, then HTTP/1.1.
    for request in
        [host("example.com"), host("EXAMPLE.com:443"), host("a").header("host", "a"), host("")]
    {
        let is_meant = request.host.as_deref().is_some_and(|host| host.len() > 1);
        assert_eq!(holds(condition(), &request), is_meant);
        assert_eq!(holds(Not(condition()), &request), !is_meant);
    }
    let field = host("Example.com").header("host", "Example.com");
    assert!(holds(condition(), &field));
    assert!(holds(Header("host").equals("example.com:8080"), &host("example.com:8080")));
    assert!(holds(Header("host").is_present(), &host("example.com")));
    assert!(!holds(Header("host").is_present(), &Request::default()));
}

#[test]
fn a_host_is_the_same_in_any_case_with_any_port_and_with_a_final_dot() {
    for text in ["api.example.com", "API.Example.COM", "api.example.com:8080", "api.example.com."] {
        assert!(holds(Host.is("Api.example.com."), &host(text)), "{text}");
        assert!(holds(Host.matches("api.example.com"), &host(text)), "{text}");
        assert!(holds(Host.matches("*.Example.com"), &host(text)), "{text}");
    }
    assert!(!holds(Host.is("example.com"), &host("api.example.com")));
    assert!(!holds(Host.is("example.com"), &Request::default()));
    assert!(holds(Host.is("[2001:db8::1]"), &host("[2001:DB8:0::1]:443")));
}

#[test]
fn hosts_below_a_name_are_not_the_name_itself() {
    let below = Host.matches("*.example.com");
    assert!(holds(below.clone(), &host("a.b.example.com")));
    for text in ["example.com", ".example.com", "badexample.com", "example.com.org", ""] {
        assert!(!holds(below.clone(), &host(text)), "{text}");
    }
}

#[test]
fn what_is_no_pattern_of_hosts_is_refused_with_what_is_wrong() {
    for pattern in ["", "*.", ":80"] {
        let error = Host.try_matches(pattern).unwrap_err();
        assert_eq!(error.to_string(), format!("the host pattern `{pattern}` names no host"));
    }
    for pattern in ["*", "a.*.com", "*.*.com", "api*.example.com"] {
        let error = Host.try_matches(pattern).unwrap_err().to_string();
        assert!(error.contains("`*` elsewhere"), "{error}");
    }
}

#[test]
fn a_header_equals_where_any_of_its_lines_does() {
    let request = Request::default().header("X-Beta", " 1\t").header("x-beta", "two");
    for value in ["1", "two"] {
        assert!(holds(Header("x-beta").equals(value), &request));
    }
    for value in ["", "Two", "1, two", "two "] {
        assert!(!holds(Header("x-beta").equals(value), &request), "{value}");
    }
    assert!(holds(Header(String::from("x-beta")).equals(String::from("1")), &request));
    assert!(holds(Header("x-beta").is_present(), &request));
    assert!(!holds(Header("x-alpha").is_present(), &request));
    assert!(!holds(Header("x").is_present(), &Request::default().header("x", " ")));
}

#[test]
fn a_query_parameter_is_decoded_before_it_is_compared() {
    let request = Request { query: Some("q=a+b&%71=%63&flag".into()), ..Request::default() };
    for value in ["a b", "c"] {
        assert!(holds(Query("q").equals(value), &request));
    }
    assert!(!holds(Query("q").equals("a+b"), &request));
    assert!(holds(Query("q").is_present(), &request));
    assert!(!holds(Query("r").is_present(), &request));
    // As for the key, what has no value is missing.
    assert!(!holds(Query("flag").is_present(), &request));
    assert!(holds(Query("flag").equals(""), &request));
}

#[test]
fn a_cookie_equals_where_any_of_its_values_does() {
    let request = Request::default().header("cookie", "a=1; s%69d=\"x\"").header("cookie", "sid=y");
    for value in ["x", "y"] {
        assert!(holds(Cookie("sid").equals(value), &request));
    }
    assert!(!holds(Cookie("sid").equals("z"), &request));
    assert!(holds(Cookie("a").is_present(), &request));
    assert!(!holds(Cookie("b").is_present(), &request));
}

#[test]
fn a_host_is_compared_as_keys_have_it() {
    let is = |host: &str, name: &str| {
        let request = Request { host: Some(host.into()), ..Request::default() };
        Host.any(&request, |value| value == name.as_bytes()).unwrap()
    };
    assert!(is("API.Example.com.:8080", "api.example.com"));
    assert!(is("u@[2001:DB8::1]:443", "[2001:db8::1]"));
    assert!(is("[::1]", "[::1]"));
    // A port is not written like this: servers would read it in different ways.
    let garbled = Request { host: Some("api.example.com:x".into()), ..Request::default() };
    assert!(Host.any(&garbled, |_| true).unwrap_err().is_ambiguous());
    let nothing = Request { host: Some(":80".into()), ..Request::default() };
    assert!(!Host.any(&nothing, |_| true).unwrap());
    assert!(!Host.any(&Request::default(), |_| true).unwrap());
}

#[test]
fn a_claim_is_what_the_application_said() {
    let paid = Request::default().extension(Claims::new().with("plan", "paid"));
    assert!(holds(Claim("plan").equals("paid"), &paid));
    assert!(!holds(Claim("plan").equals("free"), &paid));
    assert!(holds(Claim("plan").is_present(), &paid));
    for stranger in [Request::default().extension(Claims::new()), Request::default()] {
        assert!(!holds(Claim("plan").equals("paid"), &stranger));
        assert!(!holds(Claim("plan").is_present(), &stranger));
        assert!(holds(Not(Claim("plan").is_present()), &stranger));
    }
}

#[test]
fn a_condition_that_the_server_cannot_tell_is_an_error_not_a_no() {
    let missing = |rule: &dyn Rule<Request>| {
        rule.charge(&Request::default(), &mut Charge::new()).expect_err("nothing is wired up")
    };
    let near = Ip::peer().within(["10.0.0.0/8"]).unwrap();
    let peer = missing(&Limit::per_minute(1).by(Global).when(near.clone()));
    assert!(peer.is_server(), "{peer}");
    let far = missing(&Limit::per_minute(1).by(Global).when(Not(near)));
    assert_eq!(far, peer);
}

#[test]
fn an_extension_is_tested_where_it_is_there() {
    struct User {
        staff: bool,
    }

    let staff = Extension::<User>::new().is(|user| user.staff);
    assert!(holds(staff, &Request::default().extension(User { staff: true })));
    assert!(!holds(staff, &Request::default().extension(User { staff: false })));
    assert!(!holds(staff, &Request::default()));
}

#[test]
fn an_address_is_within_a_network() {
    let within = |networks: &[&str], peer: &str| {
        holds(Ip::peer().within(networks).expect("networks"), &Request::from(peer))
    };
    assert!(within(&["192.0.2.0/24", " 10.0.0.0/8"], "10.1.2.3"));
    assert!(within(&["10.0.0.0/8"], "::ffff:10.1.2.3"));
    assert!(!within(&["10.0.0.0/8"], "11.1.2.3"));
    assert!(within(&["2001:db8::1"], "2001:db8::1"));
    assert!(!within(&["2001:db8::1"], "2001:db8::2"));
    assert!(within(&["0.0.0.0/0"], "192.0.2.1") && !within(&["0.0.0.0/0"], "::1"));
    assert!(within(&["::/0"], "::1") && !within(&["::/0"], "192.0.2.1"));
    assert!(!within(&[], "192.0.2.1"));
    let behind = Ip::behind(["10.0.0.0/8"]).within(["192.0.2.0/24"]).unwrap();
    assert!(holds(behind, &Request::from("10.0.0.1").header("x-forwarded-for", "192.0.2.7")));
}

#[test]
fn a_wrong_network_is_named_with_what_is_wrong() {
    let error = Ip::peer().within(["10.0.0.0/8", "10.0.0.1/8"]).unwrap_err();
    assert_eq!(error.entry(), "10.0.0.1/8");
    assert!(error.to_string().starts_with("the network `10.0.0.1/8` has bits set beyond"));
}

#[test]
fn conditions_are_put_together() {
    let post = || Method.is("POST");
    let login = || Path.matches("/login");
    let request = |method: &str, path: &str| Request {
        method: method.into(),
        path: path.into(),
        ..Request::default()
    };
    let (both, one) = (request("POST", "/login"), request("POST", "/"));
    let none = request("GET", "/");
    assert!(holds((post(), login()), &both) && !holds((post(), login()), &one));
    assert!(holds(Either(post(), login()), &one) && !holds(Either(post(), login()), &none));
    assert!(holds(Not(post()), &none) && !holds(Not(post()), &one));
    assert!(holds(|request: &Request| request.path == "/", &one));
}

#[test]
fn lists_hold_as_tuples_and_alternatives_do() {
    let paths = |patterns: &[&str]| patterns.iter().map(|pattern| Path.matches(pattern)).collect();
    let request = Request { path: "/a/b".into(), ..Request::default() };
    assert!(holds(AnyOf(paths(&["/b", "/a/*"])), &request));
    assert!(!holds(AnyOf(paths(&["/b", "/c"])), &request));
    assert!(!holds(AnyOf(paths(&[])), &request));
    assert!(holds(AllOf(paths(&["/a/b", "/a/*"])), &request));
    assert!(!holds(AllOf(paths(&["/a/b", "/c"])), &request));
    assert!(holds(AllOf(paths(&[])), &request));
}
