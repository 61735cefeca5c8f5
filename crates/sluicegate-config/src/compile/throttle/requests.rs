use std::time::Duration;

use sluicegate_throttle::layer::{ClassHeader, DeadlineHeader, GrpcTimeout};
use sluicegate_throttle::{Class, Classes};

use crate::compile::condition::Condition;
use crate::compile::context::Context;
use crate::compile::key::Key;
use crate::document;
use crate::source::DocumentPath;
use crate::words::one_of;

/// The class of requests whose header names no class. No throttle has a class of this rank.
pub(super) const NOT_STATED: Class = Class::at(u8::MAX);

/// What a throttle reads from requests.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    pub(super) class_header: Option<ClassHeader>,
    pub(super) classes: Vec<(Condition, Class)>,
    pub(super) default_class: Class,
    pub(super) predict_by: Key,
    pub(super) fair_by: Key,
    pub(super) deadline: Deadline,
    pub(super) exempt: Option<Condition>,
    /// The condition of each partition.
    pub(super) partitions: Vec<Condition>,
}

#[derive(Debug, Clone)]
pub(super) enum Deadline {
    Never,
    Always(Duration),
    Header(DeadlineHeader),
    Grpc(GrpcTimeout),
}

impl Requests {
    pub(super) fn new(
        said: &document::Throttle,
        classes: Option<&Classes>,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        let reader = Reader { path, context, classes };
        let class_header = reader.class_header(said.class_header.as_ref());
        let cases = reader.classes(&said.class);
        let default_class = match &said.default_class {
            Some(name) => reader.class(name, &path.name("default_class")),
            None => Some(NOT_STATED),
        };
        let by = |key: &document::Key, setting| Key::new(key, &path.name(setting), context);
        let method_and_route = || Key::All([Key::Method, Key::Route].into());
        let predict_by = said.predict_by.as_ref();
        let predict_by =
            predict_by.map_or_else(|| Some(method_and_route()), |key| by(key, "predict_by"));
        let fair_by = said.fair_by.as_ref().map_or(Some(Key::Global), |key| by(key, "fair_by"));
        let deadline = reader.deadline(said.deadline.as_ref());
        let exempt = said.exempt.as_ref();
        let exempt = exempt.map(|when| Condition::new(when, &path.name("exempt"), context));
        let list = path.name("partitions");
        let partition = |(i, said): (usize, &document::Partition)| {
            Condition::new(&said.when, &list.index(i).name("when"), context)
        };
        let partitions = said.partitions.iter().enumerate().map(partition).collect();
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

    fn class_header(&self, said: Option<&document::ClassHeader>) -> Option<Option<ClassHeader>> {
        let Some(said) = said else { return Some(None) };
        let path = self.path.name("class_header");
        let name = self.context.header_name(&said.header, &path.name("header"));
        let trusted = path.name("trusted");
        if said.trusted.is_empty() {
            let message = "nobody is believed, expected addresses or networks of peers";
            self.context.report(&trusted, message);
        }
        let header = |name: &str| ClassHeader::new(name, NOT_STATED);
        for (i, peer) in said.trusted.iter().enumerate() {
            self.context.check(&trusted.index(i), header("x").from_peers([peer]));
        }
        let header = header(&name?).from_peers(&said.trusted);
        header.ok().map(Some)
    }

    fn classes(&self, said: &[document::ClassCase]) -> Option<Vec<(Condition, Class)>> {
        let list = self.path.name("class");
        let case = |(i, said): (usize, &document::ClassCase)| {
            let path = list.index(i);
            let when = Condition::new(&said.when, &path.name("when"), self.context);
            Some((when, self.class(&said.name, &path.name("name"))?))
        };
        said.iter().enumerate().map(case).collect::<Vec<_>>().into_iter().collect()
    }

    fn deadline(&self, said: Option<&document::Deadline>) -> Option<Deadline> {
        let path = self.path.name("deadline");
        let said = match said {
            None => return Some(Deadline::Never),
            Some(document::Deadline::Time(text)) => {
                return self.context.time(text, &path).map(Deadline::Always);
            }
            Some(document::Deadline::Table(table)) => table,
        };
        let otherwise = match &said.otherwise {
            Some(text) => Some(self.context.time(text, &path.name("otherwise"))?),
            None => None,
        };
        match (&said.header, said.grpc) {
            (Some(name), false) => {
                let name = self.context.header_name(name, &path.name("header"))?;
                let header = DeadlineHeader::new(&*name);
                Some(Deadline::Header(match otherwise {
                    Some(time) => header.otherwise(time),
                    None => header,
                }))
            }
            (None, true) => Some(Deadline::Grpc(match otherwise {
                Some(time) => GrpcTimeout::new().otherwise(time),
                None => GrpcTimeout::new(),
            })),
            _ => {
                self.context.report(&path, "expected either `header` or `grpc = true`");
                None
            }
        }
    }
}
