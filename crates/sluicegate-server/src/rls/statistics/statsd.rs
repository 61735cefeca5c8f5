//! Statistics for a server of StatsD, by TCP or UDP.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::oneshot;

use super::plain::plain;
use super::{Count, Counts, LIMITS, NO_DOMAIN, Other, PARTS, Parts, Statistics, TIMES};
use crate::run::ServerError;

/// A datagram of UDP fits into a frame of Ethernet.
const DATAGRAM: usize = 1_432;

/// The most bytes of all tags.
const TAGS: usize = 512;

/// How long one sending may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server of StatsD, to which the [statistics](crate::ServiceBuilder::statistics) of a service are sent.
#[derive(Debug, Clone)]
#[must_use = "`Server::statsd` sends"]
pub struct StatsD {
    kind: Kind,
    /// The host and the port.
    server: String,
    tags: Vec<(String, String)>,
    interval: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tcp,
    Udp,
    /// UDP, with tags behind the values.
    Dog,
}

impl StatsD {
    /// The server at `url`: `tcp://host:8125`, `udp://host:8125`, or `dogstatsd://host:8125` for one with tags.
    ///
    /// # Errors
    ///
    /// If the URL is another one.
    pub fn new(url: &str) -> Result<Self, ServerError> {
        let kinds = [("tcp", Kind::Tcp), ("udp", Kind::Udp), ("dogstatsd", Kind::Dog)];
        let (scheme, server) = url.split_once("://").unwrap_or_default();
        let kind = kinds.into_iter().find(|(name, _)| *name == scheme).map(|(_, kind)| kind);
        let is_server = server
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        match kind.filter(|_| is_server) {
            Some(kind) => Ok(Self {
                kind,
                server: server.to_owned(),
                tags: Vec::new(),
                interval: Duration::from_secs(10),
            }),
            None => Err(ServerError::new(format!(
                "StatsD: `{url}` is not valid, expected a URL such as udp://host:8125, tcp://host:8125 or dogstatsd://host:8125"
            ))),
        }
    }

    /// Sends a tag with each statistic. Without DogStatsD, it is a part of the name, as Envoy's service has it:
    /// `.__name=value`.
    ///
    /// # Errors
    ///
    /// If all tags together have more than 512 bytes.
    pub fn tag(mut self, name: &str, value: &str) -> Result<Self, ServerError> {
        self.tags.push((plain(name), plain(value)));
        self.tags.sort();
        let lengths = self.tags.iter().map(|(name, value)| name.len() + value.len());
        if lengths.sum::<usize>() > TAGS {
            return Err(ServerError::new(format!(
                "StatsD: expected tags of {TAGS} bytes together at most"
            )));
        }
        Ok(self)
    }

    /// How often statistics are sent. The default is 10 seconds.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval.max(Duration::from_millis(1));
        self
    }

    /// Sends statistics until `ended` is, and then what is left.
    pub(crate) async fn run(self, statistics: Statistics, mut ended: oneshot::Receiver<()>) {
        *statistics.times() = Some(std::collections::BTreeMap::new());
        let mut is_away = false;
        loop {
            let is_last = tokio::select! {
                () = tokio::time::sleep(self.interval) => false,
                _ = &mut ended => true,
            };
            let report = Report::take(&statistics, &self);
            let sent = tokio::time::timeout(PATIENCE, self.send(&report)).await;
            let sent = sent.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
            match &sent {
                Ok(()) if is_away => tracing::info!("StatsD: statistics are sent again"),
                Err(error) if !is_away => {
                    tracing::warn!(
                        server = self.server,
                        "StatsD: statistics are not sent: {error}"
                    );
                }
                _ => {}
            }
            is_away = sent.is_err();
            if is_away {
                report.give_back(&statistics);
            }
            if is_last {
                return;
            }
        }
    }

    async fn send(&self, report: &Report) -> std::io::Result<()> {
        if report.lines.is_empty() {
            return Ok(());
        }
        if self.kind == Kind::Tcp {
            // A connection that was kept could have ended meanwhile, and what is written to it would be lost.
            let mut stream = TcpStream::connect(&self.server).await?;
            stream.write_all(report.lines.as_bytes()).await?;
            return stream.shutdown().await;
        }
        let server = tokio::net::lookup_host(&self.server).await?.next();
        let server = server.ok_or(std::io::ErrorKind::NotFound)?;
        let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).await?;
        for datagram in datagrams(&report.lines) {
            socket.send_to(datagram.as_bytes(), server).await?;
        }
        Ok(())
    }
}

/// What is new since the last report.
struct Report {
    lines: String,
    /// The limits and how much of their parts is in it.
    counts: Vec<(Arc<Counts>, Parts)>,
    unknown: Vec<(Arc<Count>, u64)>,
    others: [u64; Other::ALL.len()],
}

impl Report {
    fn take(statistics: &Statistics, to: &StatsD) -> Self {
        let (mut lines, mut counts) = (String::new(), Vec::new());
        for limit in statistics.limits() {
            let news = limit.counts.each_ref().map(Count::news);
            for ((part, _), news) in PARTS.iter().zip(news).filter(|(_, news)| *news > 0) {
                let name = format!("{LIMITS}.{}.{part}", limit.name);
                to.line(&mut lines, &name, format_args!("{news}|c"));
            }
            if news != Parts::default() {
                counts.push((limit, news));
            }
        }
        let others = Other::ALL.map(|other| {
            let news = statistics.0.others[other as usize].news();
            if news > 0 {
                to.line(&mut lines, other.texts()[3], format_args!("{news}|c"));
            }
            news
        });
        let mut unknown = Vec::new();
        for (domain, count) in &*statistics.unknown() {
            let news = count.news();
            if news > 0 {
                let name = format!("{LIMITS}.{domain}.{NO_DOMAIN}");
                to.line(&mut lines, &name, format_args!("{news}|c"));
                unknown.push((Arc::clone(count), news));
            }
        }
        let times = statistics.times().as_mut().map(std::mem::take).unwrap_or_default();
        for (millis, calls) in times {
            // One line for calls that took the same time: as if one of them had been chosen.
            to.line(&mut lines, TIMES, format_args!("{millis}|ms{}", rate(calls)));
        }
        Self { lines, counts, unknown, others }
    }

    /// Nobody has got it, so its counts are told with the next one. Times are not: they would pile up.
    fn give_back(&self, statistics: &Statistics) {
        let limits = self.counts.iter().flat_map(|(limit, news)| limit.counts.iter().zip(news));
        let others = statistics.0.others.iter().zip(&self.others);
        let unknown = self.unknown.iter().map(|(count, news)| (&**count, news));
        for (count, news) in limits.chain(others).chain(unknown) {
            count.sent.fetch_sub(*news, Ordering::Relaxed);
        }
    }
}

impl Count {
    /// What was added since this was last asked.
    fn news(&self) -> u64 {
        let total = self.total();
        total - self.sent.swap(total, Ordering::Relaxed)
    }
}

impl StatsD {
    fn line(&self, lines: &mut String, name: &str, value: std::fmt::Arguments<'_>) {
        lines.push_str(name);
        let is_dog = self.kind == Kind::Dog;
        if !is_dog {
            for (name, value) in &self.tags {
                // A text never fails to be written to.
                let _ = write!(lines, ".__{name}={value}");
            }
        }
        let _ = write!(lines, ":{value}");
        for (at, (name, value)) in self.tags.iter().enumerate().filter(|_| is_dog) {
            let _ = write!(lines, "{}{name}:{value}", if at == 0 { "|#" } else { "," });
        }
        lines.push('\n');
    }
}

/// The share of calls that a line stands for. It is a little less, because servers divide by it and cut the rest off.
fn rate(calls: u64) -> String {
    const ONE: u64 = 1_000_000_000_000_000;
    if calls <= 1 { String::new() } else { format!("|@0.{:015}", (ONE / calls - 1).max(1)) }
}

/// Whole lines, together as long as a datagram may be.
fn datagrams(lines: &str) -> Vec<&str> {
    let (mut all, mut begin, mut end) = (Vec::new(), 0, 0);
    for line in lines.split_inclusive('\n') {
        if end > begin && end + line.len() - begin > DATAGRAM {
            all.push(&lines[begin..end]);
            begin = end;
        }
        end += line.len();
    }
    all.extend((end > begin).then(|| &lines[begin..end]));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted() -> Statistics {
        let statistics = Statistics::new(0.8);
        statistics.counts("edge.user_10.0.0.7").expect("room").add(&[5, 2, 1, 3, 0]);
        statistics.loaded(true);
        statistics
    }

    fn lines(statistics: &Statistics, to: &StatsD) -> Vec<String> {
        let mut lines: Vec<_> =
            Report::take(statistics, to).lines.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    #[test]
    fn what_is_new_is_told_once_under_the_names_of_the_service() {
        let (statistics, to) = (counted(), StatsD::new("udp://localhost:8125").expect("a server"));
        let limit = "ratelimit.service.rate_limit.edge.user_10_0_0_7";
        assert_eq!(
            lines(&statistics, &to),
            [
                "ratelimit.service.config_load_success:1|c".to_owned(),
                format!("{limit}.near_limit:1|c"),
                format!("{limit}.over_limit:2|c"),
                format!("{limit}.total_hits:5|c"),
                format!("{limit}.within_limit:3|c"),
            ]
        );
        assert_eq!(lines(&statistics, &to), Vec::<String>::new());
        statistics.loaded(true);
        assert_eq!(lines(&statistics, &to), ["ratelimit.service.config_load_success:1|c"]);
    }

    #[test]
    fn counts_that_did_not_arrive_are_told_with_the_next_ones() {
        let (statistics, to) = (counted(), StatsD::new("tcp://localhost:8125").expect("a server"));
        let all = lines(&counted(), &to);
        Report::take(&statistics, &to).give_back(&statistics);
        assert_eq!(lines(&statistics, &to), all);
    }

    #[test]
    fn tags_are_written_as_each_kind_of_server_reads_them() {
        let told = |url| {
            let to = StatsD::new(url).and_then(|to| to.tag("zone", "b|1")?.tag("env", "x"));
            let statistics = Statistics::new(0.8);
            statistics.loaded(false);
            lines(&statistics, &to.expect("a server"))
        };
        let name = "ratelimit.service.config_load_error";
        assert_eq!(told("tcp://h:1"), [format!("{name}.__env=x.__zone=b_1:1|c")]);
        assert_eq!(told("dogstatsd://h:1"), [format!("{name}:1|c|#env:x,zone:b_1")]);
        let long = StatsD::new("udp://h:1").and_then(|to| to.tag("a", &"x".repeat(TAGS)));
        assert!(long.is_err());
        for url in ["", "h:1", "http://h:1", "udp://h", "udp://:1", "udp://h:x"] {
            assert!(StatsD::new(url).is_err(), "{url}");
        }
    }

    #[test]
    fn times_are_as_many_as_the_calls_and_few_lines() {
        let (statistics, to) = (Statistics::new(0.8), StatsD::new("udp://h:1").expect("a server"));
        *statistics.times() = Some(std::collections::BTreeMap::new());
        for millis in 0..100_000 {
            statistics.called(Duration::from_millis(millis / 2));
        }
        let lines = lines(&statistics, &to);
        assert!(lines.len() < 2_000, "{}", lines.len());
        assert!(lines.contains(&format!("{TIMES}:7|ms|@0.499999999999999")));
        assert!(lines.contains(&format!("{TIMES}:1000|ms|@0.004999999999999")));
        for calls in (1..=100_000).chain([1 << 30]) {
            let rate = rate(calls);
            let share = rate.strip_prefix("|@").map_or(1.0, |rate| rate.parse().expect("a number"));
            let counted = (1.0_f64 / share).floor();
            let off = (counted - calls as f64) / calls as f64;
            assert!((0.0..1e-5).contains(&off), "{calls}: {counted}");
        }
    }

    #[test]
    fn datagrams_have_whole_lines() {
        let line = format!("{}\n", "x".repeat(599));
        let lines = line.repeat(5);
        let datagrams = datagrams(&lines);
        assert_eq!(datagrams.iter().map(|one| one.len()).collect::<Vec<_>>(), [1200, 1200, 600]);
        assert_eq!(datagrams.concat(), lines);
        assert!(super::datagrams("").is_empty());
    }
}
