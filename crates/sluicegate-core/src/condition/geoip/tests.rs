use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::Ip;
use crate::condition::{Condition, Not};
use crate::key::testing::{Request, key, missing};
use crate::key::{Const, KeyBuf};

use super::testing::{Value, Writer};
use super::{GeoDatabase, GeoKey};

fn countries() -> Writer {
    Writer::new("Test-Country")
        .country("192.0.2.0/24", "DE")
        .country("198.51.100.0/25", "FR")
        .country("2001:db8::/32", "DE")
}

fn subdivided(country: &'static str, parts: &[&'static str]) -> Value {
    let code = |code| Value::Map(vec![("iso_code", Value::Text(code))]);
    let parts = parts.iter().map(|&part| code(part)).collect();
    Value::Map(vec![("country", code(country)), ("subdivisions", Value::List(parts))])
}

fn cities() -> GeoDatabase {
    let writer = Writer::new("Test-City")
        .insert("192.0.2.0/25", &subdivided("US", &["CA"]))
        .insert("192.0.2.128/25", &subdivided("US", &["NY"]))
        .insert("198.51.100.0/24", &subdivided("GB", &["ENG", "WSM"]))
        .insert("203.0.113.0/25", &subdivided("MC", &[]))
        .insert("203.0.113.128/25", &Value::Map(vec![]))
        .country("2001:db8::/32", "SG");
    GeoDatabase::from_bytes(writer.write()).unwrap()
}

/// A file in a directory of its own, deleted on drop.
struct TempFile(PathBuf);

impl TempFile {
    fn new(bytes: &[u8]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sluicegate-geoip-{}-{count}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let file = Self(directory);
        file.put(bytes);
        file
    }

    fn path(&self) -> PathBuf {
        self.0.join("countries.mmdb")
    }

    /// Replaces the file.
    fn put(&self, bytes: &[u8]) {
        let new = self.0.join("new");
        fs::write(&new, bytes).unwrap();
        fs::rename(new, self.path()).unwrap();
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A request whose peer is unknown.
fn without_peer() -> Request {
    Request { peer: None, ..Request::default() }
}

fn of(geo: &GeoKey, peer: &str) -> KeyBuf {
    key(geo, &Request::from(peer))
}

fn is_from(geo: &GeoDatabase, code: &str, peer: &str) -> bool {
    geo.country(Ip::peer()).is_in([code]).unwrap().holds(&Request::from(peer)).unwrap()
}

#[test]
fn addresses_of_one_country_share_a_key() {
    let country = GeoDatabase::from_bytes(countries().write()).unwrap().country(Ip::peer());
    let germany = of(&country, "192.0.2.1");
    assert_eq!(germany, of(&country, "192.0.2.255"));
    assert_eq!(germany, of(&country, "2001:db8:ffff::1"));
    assert_eq!(germany, of(&country, "::ffff:192.0.2.1"));
    assert_ne!(germany, of(&country, "198.51.100.1"));
}

#[test]
fn all_that_is_unknown_shares_one_key() {
    let geo = cities();
    let country = geo.country(Ip::peer());
    // An address in no network, and one in a network without a country.
    assert_eq!(of(&country, "10.0.0.1"), of(&country, "203.0.113.129"));
    assert_eq!(of(&country, "10.0.0.1"), of(&country, "fe80::1"));
    assert_ne!(of(&country, "10.0.0.1"), of(&country, "203.0.113.1"));
    // Countries without regions, or with regions that the database does not know.
    let region = geo.region(Ip::peer());
    assert_eq!(of(&region, "10.0.0.1"), of(&region, "203.0.113.1"));
    assert_eq!(of(&region, "10.0.0.1"), of(&region, "2001:db8::1"));
}

#[test]
fn a_region_is_the_largest_part_of_a_country() {
    let region = cities().region(Ip::peer());
    assert_eq!(of(&region, "192.0.2.1"), of(&region, "192.0.2.127"));
    assert_ne!(of(&region, "192.0.2.1"), of(&region, "192.0.2.128"));
    let holds = |code: &str, peer: &str| {
        region.clone().is_in([code]).unwrap().holds(&Request::from(peer)).unwrap()
    };
    assert!(holds("US-CA", "192.0.2.1") && !holds("US-NY", "192.0.2.1"));
    assert!(holds("GB-ENG", "198.51.100.1") && !holds("GB-WSM", "198.51.100.1"));
}

#[test]
fn country_and_region_and_constants_are_different_keys() {
    let geo = cities();
    let (country, region) = (geo.country(Ip::peer()), geo.region(Ip::peer()));
    assert_ne!(of(&country, "10.0.0.1"), of(&region, "10.0.0.1"));
    assert_ne!(of(&country, "192.0.2.1"), of(&region, "192.0.2.1"));
    let constant = key(&Const("unknown"), &Request::from("10.0.0.1"));
    assert_ne!(of(&country, "10.0.0.1"), constant);
}

#[test]
fn a_condition_holds_for_the_countries_that_it_names() {
    let geo = GeoDatabase::from_bytes(countries().write()).unwrap();
    let near = geo.country(Ip::peer()).is_in(["DE", "AT"]).unwrap();
    assert!(near.holds(&Request::from("192.0.2.1")).unwrap());
    assert!(!near.holds(&Request::from("198.51.100.1")).unwrap());
    assert!(!near.holds(&Request::from("10.0.0.1")).unwrap(), "unknown");
    assert!(near.holds(&without_peer()).unwrap_err().is_server(), "no peer");
    assert!(Not(near).holds(&Request::from("10.0.0.1")).unwrap());
    let nowhere = geo.country(Ip::peer()).is_in(Vec::<String>::new()).unwrap();
    assert!(!nowhere.holds(&Request::from("192.0.2.1")).unwrap());
}

#[test]
fn the_address_is_the_one_behind_trusted_proxies() {
    let geo = GeoDatabase::from_bytes(countries().write()).unwrap();
    let behind = Ip::behind(["10.0.0.0/8"]);
    let request = |peer: &str| Request::from(peer).header("x-forwarded-for", "192.0.2.1");
    let germany = geo.country(behind.clone()).is_in(["DE"]).unwrap();
    assert!(germany.holds(&request("10.0.0.1")).unwrap());
    assert!(!germany.holds(&request("198.51.100.1")).unwrap(), "from France, whatever it writes");
    let country = geo.country(behind);
    assert_eq!(key(&country, &request("10.0.0.1")), of(&country, "192.0.2.1"));
}

#[test]
fn without_an_address_the_server_is_told_what_to_add() {
    let country = GeoDatabase::from_bytes(countries().write()).unwrap().country(Ip::peer());
    let missing = missing(&country, &without_peer());
    assert!(missing.is_server());
    assert_eq!(missing.hint(), "use the socket");
}

#[test]
fn what_is_no_code_is_named() {
    let geo = cities();
    for code in ["UK", "de", "DEU", "unknown", "DE-BE", ""] {
        let error = geo.country(Ip::peer()).is_in(["DE", code]).unwrap_err();
        assert_eq!(error.code(), Some(code));
        assert!(
            error.to_string().starts_with(&format!("`{code}` is not the code of a country")),
            "{error}"
        );
    }
    for code in ["US", "us-ca", "UK-ENG", "US-", "unknown"] {
        let error = geo.region(Ip::peer()).is_in([code]).unwrap_err();
        assert_eq!(error.code(), Some(code));
        assert!(
            error.to_string().starts_with(&format!("`{code}` is not the code of a region")),
            "{error}"
        );
    }
}

#[test]
fn a_file_is_reloaded_for_all_clones_and_all_that_was_made_of_them() {
    let file = TempFile::new(&countries().write());
    let geo = GeoDatabase::open(file.path()).unwrap();
    let clone = geo.clone();
    let germany = clone.country(Ip::peer()).is_in(["DE"]).unwrap();
    assert!(germany.holds(&Request::from("192.0.2.1")).unwrap());

    file.put(&Writer::new("Test-Country").country("198.51.100.0/24", "DE").write());
    assert!(germany.holds(&Request::from("192.0.2.1")).unwrap(), "nothing is read unasked");
    geo.reload().unwrap();
    assert!(!germany.holds(&Request::from("192.0.2.1")).unwrap());
    assert!(germany.holds(&Request::from("198.51.100.1")).unwrap());
}

#[test]
fn a_file_that_is_broken_or_gone_leaves_the_old_database_in_force() {
    let whole = countries().write();
    let file = TempFile::new(&whole);
    let geo = GeoDatabase::open(file.path()).unwrap();

    for broken in [&whole[..whole.len() / 2], &whole[1..], b"", b"no database"] {
        file.put(broken);
        let error = geo.reload().unwrap_err();
        assert!(error.is_broken(), "{error}");
        assert!(error.to_string().contains("countries.mmdb"), "{error}");
        assert!(is_from(&geo, "DE", "192.0.2.1"));
    }
    fs::remove_file(file.path()).unwrap();
    let error = geo.reload().unwrap_err();
    assert!(error.is_unreadable() && !error.is_broken(), "{error}");
    assert!(is_from(&geo, "DE", "192.0.2.1"));
    assert!(GeoDatabase::open(file.path()).unwrap_err().to_string().contains("cannot be read"));
}

#[cfg(unix)]
#[test]
fn a_database_is_a_regular_file_and_nothing_that_never_ends() {
    for path in ["/dev/zero", "/dev/null", "/"] {
        let error = GeoDatabase::open(path).expect_err("no database");
        assert!(error.is_unreadable(), "{error}");
    }
}

#[test]
fn a_record_that_cannot_be_read_is_found_before_anybody_asks_for_it() {
    let number = Value::Map(vec![("iso_code", Value::U32(49))]);
    for country in [number, Value::Text("Germany")] {
        let record = Value::Map(vec![("country", country)]);
        let bytes = countries().insert("203.0.113.0/24", &record).write();
        let error = GeoDatabase::from_bytes(bytes).unwrap_err();
        assert!(error.is_broken());
        assert!(error.to_string().contains("country"), "{error}");
    }
}

#[test]
fn a_database_of_something_else_is_not_taken_for_one_of_places() {
    let owner = Value::Map(vec![("autonomous_system_number", Value::U32(64_496))]);
    let bytes = Writer::new("Test-ASN").insert("192.0.2.0/24", &owner).write();
    let error = GeoDatabase::from_bytes(bytes).unwrap_err();
    assert!(error.is_broken());
    assert!(error.to_string().contains("`Test-ASN`"), "{error}");
}

#[test]
fn bytes_are_replaced_and_not_reloaded() {
    let geo = GeoDatabase::from_bytes(countries().write()).unwrap();
    assert!(geo.reload().unwrap_err().to_string().contains("`replace`"));
    assert!(geo.replace(b"no database".as_slice()).is_err());
    assert!(is_from(&geo, "DE", "192.0.2.1"));
    geo.replace(Writer::new("Test").country("192.0.2.0/24", "CH").write()).unwrap();
    assert!(is_from(&geo, "CH", "192.0.2.1"));
}

#[test]
fn who_asks_meanwhile_sees_the_old_database_or_the_new_one() {
    let (old, new) = (countries().write(), countries().country("203.0.113.0/24", "DE").write());
    let geo = GeoDatabase::from_bytes(old.clone()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert!(is_from(&geo, "DE", "192.0.2.1"));
                }
            });
        }
        for _ in 0..50 {
            geo.replace(new.clone()).unwrap();
            geo.replace(old.clone()).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}
