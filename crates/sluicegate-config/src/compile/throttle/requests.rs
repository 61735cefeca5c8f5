use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use sluicegate_core::condition::Condition as CoreCondition;
use sluicegate_core::key::{Key as CoreKey, KeyBuf, Missing, View};
use sluicegate_throttle::layer::{
    ClassHeader, Criticality, Deadline as CoreDeadline, DeadlineHeader, Partition, PartitionBy,
    Unreadable,
};
use sluicegate_throttle::{Class, Classes};

use crate::compile::condition::{Condition, UNREACHED, unreached};
use crate::compile::context::Context;
use crate::compile::key::Key;
use crate::document;
use crate::source::DocumentPath;
use crate::words::{InWords, one_of};

/// The class of requests whose header names no class. No throttle has a class of this rank.
const NOT_STATED: Class = Class::at(u8::MAX);

/// What a throttle reads from requests.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    class_header: Option<ClassHeader>,
    classes: Vec<(Condition, Class)>,
    default_class: Class,
    predict_by: Key,
    fair_by: Key,
    deadline: Deadline,
    exempt: Option<Condition>,
    /// The condition of each partition.
    partitions: Vec<Condition>,
}

#[derive(Debug, Clone)]
enum Deadline {
    Never,
    Always(Duration),
    Header(DeadlineHeader),
}

impl Requests {
    pub(super) fn new(
        spec: &document::Throttle,
        classes: Option<&Classes>,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        let reader = Reader { path, context, classes };
        let class_header = reader.class_header(spec.class_header.as_ref());
        let cases = reader.classes(&spec.class);
        let default_class = match &spec.default_class {
            Some(name) => reader.class(name, &path.name("default_class")),
            None => Some(NOT_STATED),
        };
        let by = |key: &document::Key, setting| Key::new(key, &path.name(setting), context);
        // A proxy knows no routes, and clients choose the path: with it, any number of keys would have to be learnt.
        let predict_by = match (&spec.predict_by, &context.document.upstream) {
            (Some(key), _) => by(key, "predict_by"),
            (None, Some(_)) => Some(Key::Method),
            (None, None) => Some(Key::All([Key::Method, Key::Route].into())),
        };
        let fair_by = spec.fair_by.as_ref().map_or(Some(Key::Global), |key| by(key, "fair_by"));
        let deadline = reader.deadline(spec.deadline.as_ref());
        let exempt_path = path.name("exempt");
        let exempt = spec.exempt.as_ref();
        let exempt = exempt.map(|when| Condition::new(when, &exempt_path, context));
        let list = path.name("partitions");
        report_unreached(spec.partitions.iter().map(|partition| &partition.when), &list, context);
        let last = spec.partitions.len().saturating_sub(1);
        let partition = |(i, spec): (usize, &document::Partition)| {
            let path = list.index(i);
            let path = path.name("when");
            // The last partition may be that of all other requests.
            if i == last && spec.when == document::Condition::default() {
                return Condition::always();
            }
            Condition::new(&spec.when, &path, context)
        };
        let partitions = spec.partitions.iter().enumerate().map(partition).collect();
        Some(Self {
            class_header: class_header?,
            classes: cases?,
            default_class: default_class?,
            predict_by: predict_by?,
            fair_by: fair_by?,
            deadline: deadline?,
            exempt,
            partitions,
        })
    }
}

struct Reader<'a> {
    path: &'a DocumentPath<'a>,
    context: &'a Context<'a>,
    /// `None` if they could not be read.
    classes: Option<&'a Classes>,
}

/// A value that is left out is `Some(None)`; `None` is an error, which is reported.
impl Reader<'_> {
    fn class(&self, name: &str, path: &DocumentPath<'_>) -> Option<Class> {
        let classes = self.classes?;
        let class = classes.class(name);
        if class.is_none() {
            let names: Vec<_> = (0..classes.len())
                .map(|rank| {
                    classes.name(Class::at(u8::try_from(rank).unwrap_or(u8::MAX))).to_owned()
                })
                .collect();
            let expected = one_of(names.iter()).unwrap_or_default();
            self.context.report(path, format!("there is no class `{name}`, expected {expected}"));
        }
        class
    }

    fn class_header(&self, spec: Option<&document::ClassHeader>) -> Option<Option<ClassHeader>> {
        let Some(spec) = spec else { return Some(None) };
        let path = self.path.name("class_header");
        let name = self.context.request_header(&spec.header, &path.name("header"));
        let trusted = path.name("trusted");
        if spec.trusted.is_empty() {
            let message = "nobody is believed, expected addresses or networks of peers";
            self.context.report(&trusted, message);
        }
        let header = |name: &str| ClassHeader::new(name, NOT_STATED);
        for (i, peer) in spec.trusted.iter().enumerate() {
            self.context.check(&trusted.index(i), header("x").from_peers([peer]));
        }
        let header = header(&name?).from_peers(&spec.trusted);
        header.ok().map(Some)
    }

    fn classes(&self, spec: &[document::ClassCase]) -> Option<Vec<(Condition, Class)>> {
        let list = self.path.name("class");
        report_unreached(spec.iter().map(|case| &case.when), &list, self.context);
        let case = |(i, spec): (usize, &document::ClassCase)| {
            let path = list.index(i);
            let when = Condition::new(&spec.when, &path.name("when"), self.context);
            Some((when, self.class(&spec.name, &path.name("name"))?))
        };
        spec.iter().enumerate().map(case).collect::<Vec<_>>().into_iter().collect()
    }

    fn deadline(&self, spec: Option<&document::Deadline>) -> Option<Deadline> {
        let path = self.path.name("deadline");
        let spec = match spec {
            None => return Some(Deadline::Never),
            Some(document::Deadline::Time(text)) => {
                return self.context.time(text, &path).map(Deadline::Always);
            }
            Some(document::Deadline::Table(table)) => table,
        };
        let otherwise = match &spec.otherwise {
            Some(text) => Some(self.context.time(text, &path.name("otherwise"))?),
            None => None,
        };
        let header = match (&spec.header, spec.grpc) {
            (Some(name), false) => {
                DeadlineHeader::new(&*self.context.request_header(name, &path.name("header"))?)
            }
            (None, true) => DeadlineHeader::grpc(),
            _ => {
                return self.context.refuse(&path, "expected either `header` or `grpc = true`");
            }
        };
        Some(Deadline::Header(match otherwise {
            Some(time) => header.otherwise(time),
            None => header,
        }))
    }
}

/// Reports each condition of a list that comes earlier in it. Empty ones are reported by themselves.
fn report_unreached<'a>(
    all: impl Iterator<Item = &'a document::Condition>,
    list: &DocumentPath<'_>,
    context: &Context<'_>,
) {
    let all: Vec<_> = all.collect();
    let empty = document::Condition::default();
    let found = unreached(all.iter().map(|when| (InWords(*when).to_string(), *when)));
    for i in found.into_iter().filter(|i| *all[*i] != empty) {
        context.report(&list.index(i).name("when"), UNREACHED);
    }
}

/// What a throttle reads from requests, as the file in force says it: its class, its keys, its deadline, its partition,
/// and whether it is exempt.
#[derive(Clone)]
pub struct FileRequests {
    in_force: Arc<ArcSwap<Requests>>,
    role: Role,
    partitions: Arc<[Partition]>,
}

/// Which of two keys it is.
#[derive(Debug, Clone, Copy)]
enum Role {
    Predict,
    Fair,
}

impl FileRequests {
    pub(crate) fn new(in_force: &Arc<ArcSwap<Requests>>, partitions: Arc<[Partition]>) -> Self {
        Self { in_force: Arc::clone(in_force), role: Role::Predict, partitions }
    }

    /// The same, as the key of flows.
    pub(crate) fn fair(&self) -> Self {
        Self { role: Role::Fair, ..self.clone() }
    }
}

impl<V: View> Criticality<V> for FileRequests {
    fn class(&self, view: &V, classes: &Classes) -> Result<Class, Unreadable<Class>> {
        let requests = self.in_force.load();
        let stated = requests.class_header.as_ref().map(|header| header.class(view, classes));
        let mut is_read = !matches!(stated, Some(Err(_)));
        if let Some(Ok(class)) = stated.filter(|class| *class != Ok(NOT_STATED)) {
            return Ok(class);
        }
        let mut class = requests.default_class;
        // A request that may be one of a class is never more critical than that, so no spelling of a path leaves a low class.
        let mut most = Class::at(0);
        for (when, then) in &requests.classes {
            match when.holds(view).and_then(|holds| Ok((holds, holds && when.surely_holds(view)?)))
            {
                Ok((_, true)) => {
                    class = *then;
                    break;
                }
                Ok((true, false)) => most = most.max(*then),
                Ok((false, false)) => {}
                Err(missing) => {
                    is_read = false;
                    if missing.is_client() {
                        most = most.max(*then);
                    }
                }
            }
        }
        let class = class.max(most);
        if is_read { Ok(class) } else { Err(Unreadable(class)) }
    }
}

impl<V: View> CoreKey<V> for FileRequests {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let requests = self.in_force.load();
        match self.role {
            Role::Predict => requests.predict_by.write(view, key),
            Role::Fair => requests.fair_by.write(view, key),
        }
    }
}

impl<V: View> CoreDeadline<V> for FileRequests {
    fn timeout(&self, view: &V) -> Result<Option<Duration>, Unreadable<Option<Duration>>> {
        match &self.in_force.load().deadline {
            Deadline::Never => Ok(None),
            Deadline::Always(time) => Ok(Some(*time)),
            Deadline::Header(header) => header.timeout(view),
        }
    }
}

/// Whether it is exempt.
impl<V: View> CoreCondition<V> for FileRequests {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        self.in_force.load().exempt.as_ref().map_or(Ok(false), |exempt| exempt.holds(view))
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        self.in_force.load().exempt.as_ref().map_or(Ok(false), |exempt| exempt.surely_holds(view))
    }
}

impl<V: View> PartitionBy<V> for FileRequests {
    fn partition(&self, view: &V) -> Option<Partition> {
        let requests = self.in_force.load();
        let mut conditions = requests.partitions.iter();
        let at = conditions.position(|when| when.surely_holds(view).unwrap_or(false))?;
        self.partitions.get(at).copied()
    }
}

impl fmt::Debug for FileRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileRequests").field(&self.in_force.load()).finish()
    }
}
