/// Declares the counters of a store: each is a field of `$counts`, and has a metric, the `outcome` of that if it has one, and
/// a description. The crate that uses this calls its feature for metrics `metrics`.
#[doc(hidden)]
#[macro_export]
macro_rules! store_counters {
    ($counters:ident of $counts:ident as $prefix:literal;
     $($name:ident: $metric:literal $(as $outcome:literal)?, $text:literal;)*) => {
        #[derive(Debug)]
        pub(crate) struct $counters {
            $(pub(crate) $name: Counter,)*
        }

        impl Default for $counters {
            fn default() -> Self {
                Self {
                    $($name: Counter {
                        count: ::std::sync::atomic::AtomicU64::new(0),
                        #[cfg(feature = "metrics")]
                        metric: concat!($prefix, $metric, "_total"),
                        #[cfg(feature = "metrics")]
                        outcome: None$(.or(Some($outcome)))?,
                    },)*
                }
            }
        }

        impl $counters {
            /// Writes each number into the field of its name.
            pub(crate) fn read(&self, counts: &mut $counts) {
                $(counts.$name = self.$name.count.load(::std::sync::atomic::Ordering::Relaxed);)*
            }

            /// Describes each metric to the recorder, if there is one.
            #[cfg(feature = "metrics")]
            pub(crate) fn describe(&self) {
                $(metrics::describe_counter!(self.$name.metric, metrics::Unit::Count, $text);)*
            }
        }

        #[derive(Debug)]
        pub(crate) struct Counter {
            count: ::std::sync::atomic::AtomicU64,
            #[cfg(feature = "metrics")]
            metric: &'static str,
            #[cfg(feature = "metrics")]
            outcome: Option<&'static str>,
        }

        impl Counter {
            #[inline]
            pub(crate) fn add(&self, more: u64) {
                self.count.fetch_add(more, ::std::sync::atomic::Ordering::Relaxed);
                #[cfg(feature = "metrics")]
                match self.outcome {
                    Some(outcome) => {
                        metrics::counter!(self.metric, "outcome" => outcome).increment(more);
                    }
                    None => metrics::counter!(self.metric).increment(more),
                }
            }
        }
    };
}
