use std::fmt;
use std::sync::Arc;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::key::Missing;
use sluicegate_core::rule::{KnownLimits, Rule};

use crate::view::RequestView;

/// A rule of any type, for requests to actix-web.
#[derive(Clone)]
pub struct BoxRule(Arc<dyn AnyRule>);

/// A rule as a trait object.
trait AnyRule: for<'a> Rule<RequestView<'a>> + Send + Sync {}

impl<R> AnyRule for R where R: for<'a> Rule<RequestView<'a>> + Send + Sync {}

impl BoxRule {
    /// `rule`, without its type.
    pub fn new(rule: impl for<'a> Rule<RequestView<'a>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(rule))
    }
}

impl Rule<RequestView<'_>> for BoxRule {
    fn charge(&self, view: &RequestView<'_>, charge: &mut Charge) -> Result<(), Missing> {
        self.0.charge(view, charge)
    }
}

impl KnownLimits for BoxRule {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.0.each_limit(each);
    }
}

impl fmt::Debug for BoxRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxRule")
    }
}
