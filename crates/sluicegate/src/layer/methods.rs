//! The methods that the layers of all frameworks have: written once, so that they agree in names, behaviour and
//! documentation.

/// Writes the methods and traits of `RateLimitLayer<R, S, P>`, a struct around
/// [`LayerSettings`](crate::adapter::LayerSettings), for the [`Framework`](crate::adapter::Framework) `$framework`.
/// The adapter writes `new` and the methods that take closures, because those differ.
///
/// `$krate` is the name of the adapter's crate in the examples.
#[doc(hidden)]
#[macro_export]
macro_rules! __layer {
    ($krate:literal, $framework:ty) => {
        impl<R: $crate::rule::KnownLimits, S, P> RateLimitLayer<R, S, P> {
            /// Counts in `store`. Layers on one store share what is spent on a key if their limits have the same
            /// name, or no name and the same numbers.
            ///
            /// # Panics
            ///
            /// When the store cannot keep a limit of the rule.
            #[track_caller]
            pub fn store<T: $crate::store::Store>(self, store: T) -> RateLimitLayer<R, T, P> {
                RateLimitLayer(self.0.store(store))
            }
        }

        impl<R, S, P> RateLimitLayer<R, S, P> {
            $crate::adapter::settings!($krate, "RateLimitLayer");

            /// Makes the response of a refusal by a [`Respond`](crate::response::Respond), such as
            /// [`Bare`](crate::response::Bare).
            pub fn respond<Q>(self, respond: Q) -> RateLimitLayer<R, S, Q> {
                self.map_respond(|_| respond)
            }

            /// Makes the responses of refusals with what `respond` makes of the present
            /// [`Respond`](crate::response::Respond).
            pub fn map_respond<Q>(self, respond: impl FnOnce(P) -> Q) -> RateLimitLayer<R, S, Q> {
                RateLimitLayer(self.0.map_respond(respond))
            }

            /// The same layer, with a type that does not depend on its rule, store and responder.
            ///
            /// ```
            #[doc = concat!("use ", $krate, "::service::BoxRateLimitLayer;")]
            #[doc = concat!("use ", $krate, "::{Global, Ip, Limit, RateLimitLayer};")]
            ///
            /// struct Limits {
            ///     api: BoxRateLimitLayer<String, String>,
            /// }
            ///
            /// fn limits(by_client: bool) -> Limits {
            ///     let limit = Limit::per_minute(100);
            ///     let api = match by_client {
            ///         true => RateLimitLayer::new(limit.by(Ip::peer())).boxed(),
            ///         false => RateLimitLayer::new(limit.by(Global)).boxed(),
            ///     };
            ///     Limits { api }
            /// }
            /// # let _ = limits(true).api;
            /// ```
            pub fn boxed<B, ResBody>(
                self,
            ) -> RateLimitLayer<
                $crate::service::BoxRule<B, $framework>,
                $crate::store::BoxStore,
                $crate::service::BoxRespond<B, ResBody>,
            >
            where
                R: for<'a> $crate::rule::Rule<$crate::adapter::HttpView<'a, B, $framework>>
                    + Send
                    + Sync
                    + 'static,
                S: $crate::store::Store<Future: Send + 'static> + Send + Sync + 'static,
                P: $crate::response::Respond<B, ResBody> + Send + Sync + 'static,
            {
                let settings = self.0.map_respond($crate::service::BoxRespond::new);
                RateLimitLayer(
                    settings.erased($crate::service::BoxRule::new, $crate::store::BoxStore::new),
                )
            }

            /// How often something other than passing at once happened, in this layer, its clones and the
            /// services that they wrap.
            pub fn counts(&self) -> $crate::observe::Counts {
                self.0.enforcer().observer.counters.read()
            }

            /// How many requests wait for their turn.
            pub fn waiting(&self) -> usize {
                self.0.enforcer().gate.waiting()
            }

            fn with(self, change: impl FnOnce(&mut $crate::adapter::Enforcer<S>)) -> Self {
                Self(self.0.with(change))
            }
        }

        impl<I, R: Clone, S: Clone, P: Clone> $crate::adapter::Layer<I>
            for RateLimitLayer<R, S, P>
        {
            type Service = $crate::service::RateLimitFor<I, R, S, $framework, P>;

            fn layer(&self, inner: I) -> Self::Service {
                self.0.service(inner)
            }
        }

        impl<R, S, P> ::std::fmt::Debug for RateLimitLayer<R, S, P>
        where
            R: ::std::fmt::Debug,
            S: ::std::fmt::Debug,
        {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

/// Writes the methods by which closures answer for the service inside, or with bytes: for frameworks without a type
/// for all responses.
#[doc(hidden)]
#[macro_export]
macro_rules! __respond_with {
    ($krate:literal) => {
        impl<R, S, P> RateLimitLayer<R, S, P> {
            /// Makes the response of every refusal; the closure gets the request. This includes requests without a
            /// key (400 or 500), requests that can never be admitted (413, 422) and a failing store (503), so begin
            /// with the refusal's own [`status`](crate::adapter::Refusal::status).
            /// [`respond_to_too_many`](Self::respond_to_too_many) is only for requests that exceed a limit.
            ///
            /// Where the response does not say them itself, `Retry-After`, `Cache-Control: no-store` and the
            /// `RateLimit` fields are added to it.
            ///
            /// ```
            /// use http::{HeaderValue, Request, Response};
            #[doc = concat!("use ", $krate, "::{Ip, Limit, RateLimitLayer};")]
            #[doc = concat!("use ", $krate, "::adapter::Refusal;")]
            ///
            /// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer())).respond_with(
            ///     |refusal: &Refusal, request: &Request<String>| {
            ///         let body = format!("{}: slow down\n", request.uri().path());
            ///         Response::builder().status(refusal.status()).body(body).unwrap()
            ///     },
            /// );
            /// # let _ = layer;
            /// ```
            pub fn respond_with<F, B, ResBody>(
                self,
                respond: F,
            ) -> RateLimitLayer<R, S, $crate::response::RespondFn<F>>
            where
                F: Fn(&$crate::adapter::Refusal, &::http::Request<B>) -> ::http::Response<ResBody>,
            {
                self.respond($crate::response::RespondFn(respond))
            }

            /// Makes the response of requests that exceed a limit; the closure gets the request. All other refusals
            /// are answered as before: by [`respond`](Self::respond), or the default.
            ///
            /// The same fields are added as by [`respond_with`](Self::respond_with).
            ///
            /// ```
            /// use http::{Request, Response};
            #[doc = concat!("use ", $krate, "::{Ip, Limit, RateLimitLayer};")]
            #[doc = concat!("use ", $krate, "::adapter::Refusal;")]
            ///
            /// let layer = RateLimitLayer::new(Limit::per_second(10).by(Ip::peer())).respond_to_too_many(
            ///     |refusal: &Refusal, _: &Request<String>| {
            ///         let seconds = refusal.retry_after().unwrap_or(1);
            ///         let body = format!("slow down: try again in {seconds} s\n");
            ///         Response::builder().status(429).body(body).unwrap()
            ///     },
            /// );
            /// # let _ = layer;
            /// ```
            pub fn respond_to_too_many<F, B, ResBody>(
                self,
                respond: F,
            ) -> RateLimitLayer<R, S, $crate::response::TooManyFn<F, P>>
            where
                F: Fn(&$crate::adapter::Refusal, &::http::Request<B>) -> ::http::Response<ResBody>,
            {
                self.map_respond(|others| $crate::response::TooManyFn::new(respond, others))
            }
        }
    };
}
