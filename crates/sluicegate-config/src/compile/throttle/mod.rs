//! The throttle of a document.

mod requests;
mod settings;

use sluicegate_throttle::layer::ThrottleBuilder;

pub use self::requests::FileRequests;
pub(crate) use self::requests::Requests;
use self::settings::Settings;
pub(crate) use self::settings::setting_of;
use crate::compile::context::Context;
use crate::compile::rule::redirection;
use crate::document;
use crate::source::DocumentPath;

/// A compiled throttle: its settings, and what it reads from requests.
#[derive(Debug, Clone)]
pub(crate) struct Throttling {
    /// The part of the document that it was compiled from, to find changes.
    pub(crate) spec: document::Throttle,
    settings: Settings,
    pub(crate) requests: Requests,
}

impl Throttling {
    pub(in crate::compile) fn new(
        spec: &document::Throttle,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        let settings = Settings::new(spec, path, context);
        let requests = Requests::new(spec, settings.as_ref().map(Settings::classes), path, context);
        let is_sound = check_shed(spec.when_shed.as_ref(), &path.name("when_shed"), context);
        is_sound.then_some(())?;
        Some(Self { spec: spec.clone(), settings: settings?, requests: requests? })
    }

    /// The settings, for a throttle to be made, or for one that runs.
    pub(crate) fn builder(&self) -> ThrottleBuilder {
        self.settings.builder()
    }

    /// The names of the partitions, in the order of the requests' conditions.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = &str> {
        self.spec.partitions.iter().map(|partition| partition.name.as_str())
    }
}

fn check_shed(
    spec: Option<&document::WhenShed>,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> bool {
    match spec {
        Some(document::WhenShed::Redirect(redirect)) => {
            redirection(redirect, path, context).is_some()
        }
        Some(document::WhenShed::Degrade(document::Degrade { degrade: 0 })) => {
            let message = "with 0 degraded requests all are refused, expected at least 1";
            context.report(&path.name("degrade"), message);
            false
        }
        _ => true,
    }
}
