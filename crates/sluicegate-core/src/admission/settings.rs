//! The settings that the builder of every adapter has: written once, so that adapters agree in names, defaults and
//! documentation.

/// Writes the methods of a builder that change an [`Enforcer`](crate::adapter::Enforcer).
///
/// The builder has a method `with(self, impl FnOnce(&mut Enforcer<S>)) -> Self`. `$krate` and `$builder` are
/// the names that the examples in the documentation use.
#[doc(hidden)]
#[macro_export]
macro_rules! __settings {
    ($krate:literal, $builder:literal) => {
        /// What happens to requests that exceed a limit; they are [blocked](crate::Rejection::block) by default.
        pub fn rejection(self, rejection: $crate::Rejection) -> Self {
            self.with(|enforcer| enforcer.gate = enforcer.gate.with(rejection))
        }

        /// Which header fields tell clients what they have left; [`Fields::DRAFT`](crate::Fields::DRAFT) by default.
        pub fn fields(self, fields: $crate::Fields) -> Self {
            self.with(|enforcer| enforcer.fields = fields)
        }

        /// Writes the header fields of OpenAI's or Anthropic's API too, for the clients of language models. `None`
        /// changes nothing.
        ///
        /// # Panics
        ///
        /// If the [`Dialect`](crate::response::Dialect) names no policy, or one that none of the rule's limits has.
        #[track_caller]
        pub fn dialect(
            self,
            dialect: impl ::core::convert::Into<::core::option::Option<$crate::response::Dialect>>,
        ) -> Self {
            match dialect.into() {
                Some(dialect) => self.with(|enforcer| enforcer.speak(dialect)),
                None => self,
            }
        }

        /// Whether the [`Decision`](crate::Decision) is left in the extensions of requests, for handlers, and of
        /// responses, for outer layers. By default it is left in requests, and in responses only if a limit is
        /// exceeded.
        pub fn extensions(self, extensions: bool) -> Self {
            self.with(|enforcer| enforcer.extensions = extensions.into())
        }

        /// What happens when the store fails, is full, or does not answer in time; requests are
        /// [admitted](crate::store::OnStoreError::Admit) by default.
        pub fn on_store_error(self, on_store_error: $crate::store::OnStoreError) -> Self {
            self.with(|enforcer| enforcer.on_store_error = on_store_error)
        }

        /// The status for a request that can never be admitted, because it costs more than a limit ever admits (see
        /// [`Refusal::NeverFits`](crate::adapter::Refusal::NeverFits)). By default it is `413 Content Too Large` if
        /// the cost is the length of the body, and `422 Unprocessable Content` otherwise.
        ///
        /// # Panics
        ///
        /// If the status is not from 400 to 499, or is 429, which invites the client to try again.
        #[track_caller]
        pub fn never_fits_status(self, status: u16) -> Self {
            let never_fits_status = $crate::adapter::client_error(status);
            self.with(|enforcer| enforcer.never_fits_status = never_fits_status)
        }

        /// How long to wait for a store that is not in this process; one second by default.
        pub fn deadline(self, deadline: ::std::time::Duration) -> Self {
            self.with(|enforcer| enforcer.deadline = Some(deadline))
        }

        /// Until when a request holds its places of [`Limit::concurrent`](crate::Limit::concurrent), and when an
        /// answer whose cost is [running](crate::cost::RunningCost) is settled: by default when the response's body
        /// has ended, or the upgraded connection has closed.
        ///
        /// ```
        #[doc = concat!("use ", $krate, "::{Ip, Limit, ", $builder, "};")]
        #[doc = concat!("use ", $krate, "::adapter::Hold;")]
        ///
        /// // Five requests being handled. Responses that are still being sent to slow clients do not count.
        #[doc = concat!("let limit = ", $builder, "::new(Limit::concurrent(5).by(Ip::peer())).hold_until(Hold::Head);")]
        /// # let _ = limit;
        /// ```
        pub fn hold_until(self, hold: $crate::adapter::Hold) -> Self {
            self.with(|enforcer| enforcer.hold = hold)
        }

        /// Reports refused keys to `watch`: a [`Watch`](crate::observe::Watch) shows those that are refused most.
        ///
        /// ```
        #[doc = concat!("use ", $krate, "::{Ip, Limit, ", $builder, "};")]
        #[doc = concat!("use ", $krate, "::observe::Watch;")]
        ///
        /// let watch = Watch::new(32);
        #[doc = concat!("let limit = ", $builder, "::new(Limit::per_second(10).by(Ip::peer())).watch(&watch);")]
        /// assert!(watch.snapshot().is_empty());
        /// # let _ = limit;
        /// ```
        pub fn watch(self, watch: &$crate::observe::Watch) -> Self {
            self.with(|enforcer| enforcer.observer.watch = Some(watch.clone()))
        }

        /// What events show of the keys of requests, in a field `who`; [nothing](crate::observe::ShowKeys::Hidden) by default.
        pub fn show_keys(self, show_keys: $crate::observe::ShowKeys) -> Self {
            self.with(|enforcer| enforcer.observer.show_keys = show_keys)
        }
    };
}
