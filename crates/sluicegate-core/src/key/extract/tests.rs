//! Keys that are read from one place of the request, side by side.

use super::*;
use crate::key::testing::{Request, key, missing};
use crate::key::{Claims, KeyBuf, Missing, Part};

fn header(name: &str, value: &str) -> Request {
    Request::default().header(name, value)
}

fn query(query: &str) -> Request {
    Request { query: Some(query.into()), ..Request::default() }
}

fn cookies(lines: &[&str]) -> Request {
    lines.iter().fold(Request::default(), |request, line| request.header("cookie", line))
}

fn claims(claims: Claims) -> Request {
    Request::default().extension(claims)
}

/// A request to a path of the route `/{id}`.
fn to(path: &str) -> Request {
    Request { path: path.into(), route: Some("/{id}".into()), ..Request::default() }
}

struct User(u64);
struct Tenant(u64);

impl Part for User {
    fn write(&self, key: &mut KeyBuf) {
        self.0.write(key);
    }
}

impl Part for Tenant {
    fn write(&self, key: &mut KeyBuf) {
        self.0.write(key);
    }
}

#[test]
fn every_spelling_of_a_value_is_one_key() {
    let parameter = |text| key(&Query("key"), &query(text));
    for text in ["x&key=a+b=c&y=1", "k%65y=%61%20b%3dc", "&&key=a b=c", "key=a b=c&key=a+b=c"] {
        assert_eq!(parameter(text), parameter("key=a b=c"), "{text}");
    }
    let cookie = |lines: &[&str]| key(&Cookie("sid"), &cookies(lines));
    for lines in [
        &["x=1; sid=a=b; y=2"][..],
        &["x=1", "y=2;sid=\"a=b\""],
        &[" sid = a=b "],
        &["s%69d=%61=b"],
        &["sid=a=b; sid=a%3Db", "sid=\"a=b\""],
    ] {
        assert_eq!(cookie(lines), cookie(&["sid=a=b"]), "{lines:?}");
    }
    let field = |value| key(&Header("a"), &header("a", value));
    assert_eq!(field(" \t1 2\t "), field("1 2"));
    assert_eq!(key(&Header("A"), &header("a", "1")), field("1"));
    // Bytes that are no text are a key too.
    key(&Header("a"), &Request::default().header("a", [0xff_u8]));
}

#[test]
fn a_name_that_is_known_only_when_running_is_the_same_key() {
    let name = String::from("a");
    let claim = claims(Claims::new().with("a", "1"));
    for [running, known] in [
        [key(&Header(name.clone()), &header("a", "1")), key(&Header("a"), &header("a", "1"))],
        [key(&Query(name.clone()), &query("a=1")), key(&Query("a"), &query("a=1"))],
        [key(&Cookie(name.clone()), &cookies(&["a=1"])), key(&Cookie("a"), &cookies(&["a=1"]))],
        [key(&Claim(name), &claim), key(&Claim("a"), &claim)],
    ] {
        assert_eq!(running, known);
    }
    let missing = missing(&Header(String::from("b")), &header("a", "1"));
    assert_eq!(missing.what(), "the `b` header");
}

#[test]
fn what_does_not_count_changes_no_key() {
    let by_length = from_fn(|request: &Request| Some(request.path.len()));
    let user = Extension::<User>::new();
    let (alone, beside) = (Request::default().extension(User(7)), Tenant(8));
    let both = Request::default().extension(User(7)).extension(beside);
    for [one, other] in [
        [key(&Route, &to("/1")), key(&Route, &to("/2"))],
        [key(&Global, &to("/1")), key(&Global, &to("/2"))],
        [key(&by_length, &to("/1")), key(&by_length, &to("/2"))],
        [key(&user, &alone), key(&user, &both)],
        // Combinations of one are that one.
        [key(&(Header("a"),), &header("a", "1")), key(&Header("a"), &header("a", "1"))],
        [key(&Optional(Header("a")), &header("a", "1")), key(&Header("a"), &header("a", "1"))],
    ] {
        assert_eq!(one, other);
    }
}

#[test]
fn other_values_and_other_places_are_other_keys() {
    let all = Request { method: "/a".into(), route: Some("/a".into()), ..to("/a") };
    let fields = header("a", "1").header("b", "1");
    let named = claims(Claims::new().with("a", "1").with("b", "1"));
    let other_claim = claims(Claims::new().with("a", "2"));
    let user = Extension::<User>::new();
    let extensions = Request::default().extension(User(7)).extension(Tenant(7));
    let other_user = Request::default().extension(User(8));
    let by_length = from_fn(|request: &Request| Some(request.path.len()));
    let (a, b) = (Header("a"), Header("b"));
    let [early, late] = [("12", "3"), ("1", "23")].map(|(a, b)| header("a", a).header("b", b));
    let cookie = |line| key(&Cookie("sid"), &cookies(&[line]));
    for (number, [one, other]) in [
        [key(&Path, &all), key(&Route, &all)],
        [key(&Path, &all), key(&Method, &all)],
        [key(&Path, &to("/1")), key(&Path, &to("/2"))],
        [key(&a, &fields), key(&b, &fields)],
        [key(&Query("key"), &query("key=a")), key(&Query("key"), &query("key=a b=c"))],
        [cookie("sid=a"), cookie("sid=a=b")],
        [cookie("sid=a+b"), cookie("sid=a b")],
        // A lone quote is part of the value.
        [cookie("sid=\""), cookie("sid=\"a\"")],
        [key(&Claim("a"), &named), key(&Claim("b"), &named)],
        [key(&Claim("a"), &named), key(&Claim("a"), &other_claim)],
        [key(&user, &extensions), key(&Extension::<Tenant>::new(), &extensions)],
        [key(&user, &extensions), key(&user, &other_user)],
        [key(&by_length, &to("/a")), key(&by_length, &to("/ab"))],
        [key(&Global, &all), key(&Const(()), &all)],
        [key(&Const("a"), &all), key(&Const("b"), &all)],
        // In a tuple, order counts, and neighbours do not run into each other.
        [key(&(a, b), &early), key(&(a, b), &late)],
        [key(&(a, b), &early), key(&(b, a), &early)],
        [key(&(a, b, Method, Path), &early), key(&(a, b), &early)],
    ]
    .into_iter()
    .enumerate()
    {
        assert_ne!(one, other, "pair {number}");
    }
}

#[test]
fn what_is_absent_or_empty_is_the_clients_to_mend() {
    let of = |what: &'static str, missing: Missing| (what, missing);
    let no_header = [Request::default(), header("x-api-key", " \t ")]
        .map(|it| missing(&Header("x-api-key"), &it));
    let no_query = ["", "key", "key=", "Key=a", "xkey=a", "=a"].map(query);
    let no_query =
        no_query.into_iter().chain([Request::default()]).map(|it| missing(&Query("key"), &it));
    let no_cookie = [&[][..], &["sid"], &["sid="], &["sid=\"\""], &["Sid=a"], &["xsid=a; =a"]]
        .map(|lines| missing(&Cookie("sid"), &cookies(lines)));
    // A request without claims is one with empty claims.
    let no_claim =
        [claims(Claims::new()), claims(Claims::new().with("sub", "")), Request::default()]
            .map(|it| missing(&Claim("sub"), &it));
    let each = no_header.map(|it| of("the `x-api-key` header", it)).into_iter();
    let each = each.chain(no_query.map(|it| of("the `key` query parameter", it)));
    let each = each.chain(no_cookie.map(|it| of("the `sid` cookie", it)));
    for (what, missing) in each.chain(no_claim.map(|it| of("the `sub` claim", it))) {
        assert!(missing.is_client() && !missing.is_ambiguous(), "{missing}");
        assert_eq!(missing.to_string(), format!("the request lacks {what}"));
    }
    let nothing = from_fn(|_: &Request| None::<&str>);
    assert!(missing(&nothing, &Request::default()).is_client());
    assert!(missing(&(Method, Header("a"), Path), &Request::default()).is_client());
    let first = First((Claim("sub"), Path));
    assert_eq!(key(&first, &Request::default()), key(&first, &claims(Claims::new())));
}

#[test]
fn two_values_that_may_differ_are_refused() {
    for second in ["1", "2", ""] {
        let twice = missing(&Header("x"), &header("x", "1").header("X", second));
        assert!(twice.is_client() && twice.is_ambiguous());
        assert_eq!(twice.what(), "exactly one `x` header");
    }
    for text in ["key=a&key=b", "key=a&k%65y=b", "key=&key=b", "key=a&key"] {
        assert!(missing(&Query("key"), &query(text)).is_ambiguous(), "{text}");
    }
    for lines in [&["sid=a; sid=b"][..], &["sid=a", "sid=b"], &["sid=a", "s%69d=b"]] {
        assert!(missing(&Cookie("sid"), &cookies(lines)).is_ambiguous(), "{lines:?}");
    }
}

#[test]
fn only_what_the_client_left_out_is_optional() {
    let optional = Optional(Header("a"));
    assert!(missing(&optional, &Request::default()).is_exempt());
    assert!(missing(&Optional(Route), &Request::default()).is_server());
    let twice = missing(&optional, &header("a", "1").header("a", "2"));
    assert!(twice.is_client() && !twice.is_exempt());
}

#[test]
fn what_the_server_does_not_provide_is_the_servers_to_mend() {
    for name in ["", "x api key", "x:", "schlüssel"] {
        assert!(missing(&Header(name), &Request::default()).is_server(), "{name}");
    }
    let route = missing(&Route, &Request::default());
    assert!(route.is_server() && route.hint() == "use the router");
    let user = missing(&Extension::<User>::new(), &Request::default());
    assert!(user.is_server() && user.what().contains("User") && user.hint().contains("layer"));
}
