//! How each limiter is used, for readers who know it. Markdown lists, printed below the tables.

/// Those that run beside sluicegate in every row.
pub const FIELD: &str = "\
- sluicegate `Limiter`: `Limiter::spend`, its `Memory` made for exactly as many keys. sluicegate `Store`: the same `Memory`, asked with a
  `Charge`, as the layers do.
- governor: `RateLimiter::keyed`, all defaults, and `dashmap_with_hasher` with foldhash. Its map grows as it must; it takes no size.
- Text is a `String` in maps that keep keys. Everybody is asked with one that is reused, so nobody allocates for asking.";

/// Those that know no keys.
pub const UNKEYED: &str = "\
- governor: `RateLimiter::direct`. rate-net: `DirectLimiter`, with its default clock and with a `CoarseClock` of 1 ms.
- leaky-bucket: `try_acquire`, fair as it comes, and not fair, which reads no clock and takes no lock while there are tokens. Not fair
  is measured on one thread only: version 1.1.2 can then lose all its tokens when two threads ask at once.
- ratelimit: `try_wait`.";

/// The others.
pub const RIVALS: &str = "\
- rate-net: `check`, and `check_bytes` for text; room for twice as many keys as there are, and no less than its default; with its
  default clock and with a `CoarseClock` of 1 ms.
- throttlecrab: `PeriodicStore`, its default, made for as many keys, in a `Mutex` as its documentation prescribes, with
  `SystemTime::now()` for every call. Its keys are text; a `u64` is written as 16 hexadecimal digits into a buffer that is kept.
- tokio-rate-limit: `RateLimiter::check`, its default token bucket. Its keys are text, as above.
- limitador: in memory, room for twice as many counters, one limit on one variable, `check_rate_limited_and_update` with a map of
  variables made for every call. It takes minutes to meet ten million keys and to forget them: `–` in the short form.
- tower-resilience-ratelimiter cannot be asked without a service; it is among the layers.";
