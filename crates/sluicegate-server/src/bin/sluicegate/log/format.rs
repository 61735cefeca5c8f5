//! The formats of logs, and which one a log has.

use std::net::IpAddr;

use csv_core::{ReadRecordResult, ReaderBuilder};

use super::field::{Draft, Field, Headers};
use super::json::Mapping;
use super::template::{self, Template};

/// The names of `--format`.
const NAMES: &[&str] = &[
    "combined", "main", "common", "vhost", "envoy", "haproxy", "alb", "json", "caddy", "traefik",
    "google", "azure", "csv",
];

/// How to read the lines of a log.
#[derive(Debug, Clone)]
pub(super) struct Format {
    /// For people.
    pub(super) name: String,
    lines: Lines,
    /// The names of the fields of requests.
    pub(super) headers: Headers,
    /// Whether the time is that of the end of the answer.
    pub(super) is_end: bool,
    /// How times are written, if not as everywhere.
    pub(super) pattern: Option<String>,
    /// Whether the zone of times is a field of its own.
    pub(super) has_zone: bool,
}

#[derive(Debug, Clone)]
enum Lines {
    Template(Template),
    /// Of HAProxy, which a system log may have put its own words before.
    Syslog(Template),
    Json(Mapping),
    Csv(Vec<Field>),
}

/// Formats of lines by name, in the words of nginx. In the longest formats the names of fields that nobody reads are short.
const TEMPLATES: &[(&str, &str)] = &[
    (
        "combined",
        r#"$remote_addr $i $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#,
    ),
    // That of nginx's packages.
    (
        "main",
        r#"$remote_addr $i $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for""#,
    ),
    // Apache's for several hosts.
    (
        "vhost",
        r#"$host $remote_addr $i $remote_user [$time_local] "$request" $status $bytes_sent "$http_referer" "$http_user_agent""#,
    ),
    (
        "alb",
        r#"$type $time $elb $remote_addr $target $request_time $request_time $request_time $status $i $received $bytes_sent "$request" "$http_user_agent" $cipher $protocol $group "$trace" "$domain" "$certificate" $priority $start_time "#,
    ),
    (
        "envoy",
        r#"[$start_time] "$request" $status $flags $i $bytes_sent $request_time_ms $upstream "$http_x_forwarded_for" "$http_user_agent" "$http_x_request_id" "$host" "$upstream""#,
    ),
    (
        "envoy",
        r#"[$start_time] "$request" $status $flags $details $i "$failure" $i $bytes_sent $request_time_ms $upstream "$http_x_forwarded_for" "$http_user_agent" "$http_x_request_id" "$host" "$upstream""#,
    ),
    // What Istio appends.
    (
        "envoy",
        r#"[$start_time] "$request" $status $flags $details $i "$failure" $i $bytes_sent $request_time_ms $upstream "$http_x_forwarded_for" "$http_user_agent" "$http_x_request_id" "$host" "$upstream" $cluster $local $here $remote_addr "#,
    ),
    (
        "haproxy",
        r#"$remote_addr_and_port [$start_time] $frontend $server $i/$i/$i/$i/$request_time_ms $status $bytes_sent $i "$request""#,
    ),
    ("common", r#"$remote_addr $i $remote_user [$time_local] "$request" $status $body_bytes_sent"#),
];

/// Formats of JSON by name: the paths of values, and what they mean in the words of nginx. The first word says whether the
/// time is that of the `start` or of the `end`.
const OBJECTS: &[(&str, &str)] = &[
    (
        "caddy",
        "end ts=time request.remote_ip=remote_addr request.method=request_method request.host=host request.uri=request_uri \
         request.headers.User-Agent=http_user_agent request.headers.Referer=http_referer \
         request.headers.X-Forwarded-For=http_x_forwarded_for duration=request_time size=bytes_sent status=status",
    ),
    (
        "traefik",
        "start StartUTC=start_time time=time ClientAddr=remote_addr RequestMethod=request_method RequestHost=host \
         RequestPath=request_uri DownstreamStatus=status DownstreamContentSize=bytes_sent Duration=request_time_ns \
         request_User-Agent=http_user_agent request_Referer=http_referer request_X-Forwarded-For=http_x_forwarded_for",
    ),
    (
        "google",
        "start timestamp=time httpRequest.remoteIp=remote_addr httpRequest.requestMethod=request_method \
         httpRequest.requestUrl=request_uri httpRequest.status=status httpRequest.responseSize=bytes_sent \
         httpRequest.latency=request_time httpRequest.userAgent=http_user_agent httpRequest.referer=http_referer",
    ),
    (
        "azure",
        "end time=time timeStamp=time properties.clientIP=remote_addr properties.clientIp=remote_addr \
         properties.httpMethod=request_method properties.requestUri=request_uri properties.requestQuery=args \
         properties.httpStatus=status properties.httpStatusCode=status properties.sentBytes=bytes_sent \
         properties.responseBytes=bytes_sent properties.timeTaken=request_time properties.host=host \
         properties.hostName=host properties.userAgent=http_user_agent properties.referer=http_referer",
    ),
    (
        "envoy",
        "start start_time=start_time downstream_remote_address=remote_addr method=request_method path=request_uri \
         authority=host response_code=status bytes_sent=bytes_sent duration=request_time_ms \
         user_agent=http_user_agent x_forwarded_for=http_x_forwarded_for request_id=http_x_request_id",
    ),
    (
        "json",
        "end time=time time_local=time time_iso8601=time msec=time timestamp=time @timestamp=time ts=time \
         remote_addr=remote_addr client_ip=remote_addr clientip=remote_addr remote_ip=remote_addr ip=remote_addr \
         request=request request_method=request_method method=request_method request_uri=request_uri uri=uri \
         url=request_uri path=uri args=args host=host http_host=host server_name=server_name status=status \
         body_bytes_sent=bytes_sent bytes_sent=bytes_sent request_time=request_time \
         http_user_agent=http_user_agent user_agent=http_user_agent http_referer=http_referer \
         http_referrer=http_referer referer=http_referer http_x_forwarded_for=http_x_forwarded_for \
         x_forwarded_for=http_x_forwarded_for",
    ),
];

/// What `--fields` says: the name of a value in the log, and its meaning.
pub(super) type Names = [(String, String)];

impl Format {
    /// The formats that `--format` means, or all that are guessed.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong.
    pub(super) fn candidates(
        format: Option<&str>,
        names: &Names,
        lines: &[&str],
    ) -> Result<Vec<Self>, String> {
        if let Some(format) = format.filter(|format| !NAMES.contains(format)) {
            if !format.contains(['$', '%']) {
                return Err(format!(
                    "--format: `{format}` is neither the name of a format ({}) nor a format string, which has variables such as \
                     `$remote_addr` (nginx), `%h` (Apache) or `%REQ(:METHOD)%` (Envoy)",
                    NAMES.join(", ")
                ));
            }
            let mut headers = Headers::default();
            let compiled = template::compile(format, &mut headers)?;
            return Ok(vec![Self {
                name: "the format that was given".to_owned(),
                lines: Lines::Template(compiled.template),
                headers,
                is_end: compiled.is_end,
                pattern: compiled.pattern,
                has_zone: compiled.has_zone,
            }]);
        }
        let is_meant = |name: &&str| format.is_none_or(|format| format == *name);
        let mut candidates = Vec::new();
        for (name, text) in TEMPLATES.iter().filter(|(name, _)| is_meant(name)) {
            if *name == "main" && format.is_none() && !have_forwarded_for(lines) {
                continue;
            }
            let mut headers = Headers::default();
            let compiled = template::compile(text, &mut headers)?;
            let lines = match *name {
                "haproxy" => Lines::Syslog(compiled.template),
                _ => Lines::Template(compiled.template),
            };
            candidates.push(Self {
                name: (*name).to_owned(),
                lines,
                headers,
                is_end: true,
                pattern: None,
                has_zone: false,
            });
        }
        for (name, text) in OBJECTS {
            // Names of one's own are for any JSON, unless a format is named.
            let is_meant =
                is_meant(name) && (names.is_empty() || format.is_some() || *name == "json");
            if is_meant {
                candidates.push(Self::json(name, text, names)?);
            }
        }
        if is_meant(&"csv") {
            candidates.extend(Self::csv(lines.first().copied().unwrap_or_default(), names)?);
        }
        Ok(candidates)
    }

    fn json(name: &str, text: &str, names: &Names) -> Result<Self, String> {
        let (mut headers, mut mapping) = (Headers::default(), Mapping::default());
        let mut words = text.split_ascii_whitespace();
        let is_end = words.next() == Some("end");
        for (path, meaning) in words.filter_map(|word| word.split_once('=')) {
            mapping.add(path, meant(meaning, &mut headers)?);
        }
        for (path, meaning) in names {
            mapping.add(path, meant(meaning, &mut headers)?);
        }
        let name = if name == "json" { name.to_owned() } else { format!("{name} in JSON") };
        let lines = Lines::Json(mapping);
        Ok(Self { name, lines, headers, is_end, pattern: None, has_zone: false })
    }

    /// The format of a file of values with commas between them, whose first line names them.
    fn csv(first: &str, names: &Names) -> Result<Option<Self>, String> {
        let (_, of_json) =
            OBJECTS.iter().find(|(name, _)| *name == "json").copied().unwrap_or_default();
        let mut headers = Headers::default();
        let mut fields = Vec::new();
        let mut failed = None;
        each_value(first, |_, title| {
            let own = names.iter().find(|(name, _)| name == title).map(|(_, meaning)| &**meaning);
            let known = || {
                let pairs =
                    of_json.split_ascii_whitespace().filter_map(|word| word.split_once('='));
                let title = title.trim().to_ascii_lowercase().replace([' ', '-'], "_");
                let known = pairs.filter(|(name, _)| *name == title).map(|(_, meaning)| meaning);
                known.into_iter().next()
            };
            fields.push(match own.or_else(known) {
                None => Field::Ignore,
                Some(meaning) => meant(meaning, &mut headers).unwrap_or_else(|error| {
                    failed = Some(error);
                    Field::Ignore
                }),
            });
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let has = |wanted: &[Field]| wanted.iter().any(|field| fields.contains(field));
        let is_log = has(&[Field::Time, Field::Start])
            && has(&[Field::Request, Field::Target, Field::Rewritten]);
        let lines = Lines::Csv(fields);
        Ok(is_log.then(|| Self {
            name: "csv".to_owned(),
            lines,
            headers,
            is_end: true,
            pattern: None,
            has_zone: false,
        }))
    }

    /// Whether the first line names the values.
    pub(super) fn has_titles(&self) -> bool {
        matches!(self.lines, Lines::Csv(_))
    }

    /// How many parts a line has to have. Of formats that read the same lines, the one with most parts is meant.
    pub(super) fn weight(&self) -> usize {
        match &self.lines {
            Lines::Template(template) | Lines::Syslog(template) => template.len(),
            Lines::Json(_) | Lines::Csv(_) => 0,
        }
    }

    /// Reads a line.
    #[inline]
    pub(super) fn read(&self, line: &str, draft: &mut Draft<'_>) -> Option<()> {
        match &self.lines {
            Lines::Template(template) => template.read(line, draft),
            Lines::Syslog(template) => {
                // `Feb  6 12:14:14 host haproxy[14389]: `
                let own = line.split_once("]: ").filter(|(before, _)| !before.contains('"'));
                let line = own.map_or(line, |(_, line)| line);
                draft.has_codes = true;
                template.read(line, draft)
            }
            Lines::Json(mapping) => mapping.read(line, draft),
            Lines::Csv(fields) => {
                let count = each_value(line, |index, value| {
                    if let Some(field) = fields.get(index) {
                        draft.text(*field, value);
                    }
                });
                (count == fields.len()).then_some(())
            }
        }
    }
}

/// Whether the fourth text between quotes, which is the last one, is addresses. Other servers append other fields. A client
/// may send anything in it, so that a few lines do not decide.
fn have_forwarded_for(lines: &[&str]) -> bool {
    let is_address = |text: &str| text.trim().parse::<IpAddr>().is_ok();
    let (mut empty, mut full) = (0, 0);
    for line in lines {
        match *line.split('"').collect::<Vec<_>>() {
            [.., "-", _] if line.matches('"').count() == 8 => empty += 1,
            [_, _, _, _, _, _, _, text, _] if text.split(',').all(is_address) => full += 1,
            _ => {}
        }
    }
    full > 0 && (empty + full) * 10 >= lines.len() * 9
}

/// The meaning of a name.
fn meant(meaning: &str, headers: &mut Headers) -> Result<Field, String> {
    headers.variable(meaning).ok_or_else(|| {
        format!(
            "--fields: `{meaning}` is not known, expected a variable of nginx such as time, remote_addr, request, request_method, \
             request_uri, status, bytes_sent, request_time, host, or http_NAME for a header field"
        )
    })
}

/// Calls `each` with the values of a line, and returns how many there are. Values without quotes stay where they are.
fn each_value(line: &str, mut each: impl FnMut(usize, &str)) -> usize {
    if !line.contains('"') {
        return line.split(',').enumerate().map(|(index, value)| each(index, value)).count();
    }
    let mut reader = ReaderBuilder::new().terminator(csv_core::Terminator::Any(b'\n')).build();
    let mut output = vec![0; line.len()];
    let mut ends = [0; 256];
    let (mut input, mut written, mut count) = (line.as_bytes(), 0, 0);
    // The second time, there is no input, which is the end of the record.
    loop {
        let (result, read, wrote, ended) =
            reader.read_record(input, &mut output[written..], &mut ends[count..]);
        input = &input[read..];
        written += wrote;
        count += ended;
        match result {
            ReadRecordResult::InputEmpty => {}
            _ => break,
        }
    }
    let mut from = 0;
    for (index, &end) in ends[..count].iter().enumerate() {
        each(index, std::str::from_utf8(&output[from..end]).unwrap_or_default());
        from = end;
    }
    count
}
