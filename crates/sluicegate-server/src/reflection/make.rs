//! Makes descriptors from the tables of [`files`](super::files).

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto, OneofDescriptorProto,
    ServiceDescriptorProto,
};

/// A protocol file.
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) package: &'static str,
    pub(super) imports: &'static [&'static str],
    pub(super) messages: &'static [Message],
    pub(super) enums: &'static [Enum],
    /// A service, with its only method: name, request, answer.
    pub(super) service: Option<(&'static str, [&'static str; 3])>,
}

/// A message.
#[derive(Clone, Copy)]
pub(super) struct Message {
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
    pub(super) messages: &'static [Self],
    pub(super) enums: &'static [Enum],
    /// Whether its fields exclude each other, by this name.
    pub(super) one_of: Option<&'static str>,
}

/// A message without others inside.
pub(super) const fn message(name: &'static str, fields: &'static [Field]) -> Message {
    Message { name, fields, messages: &[], enums: &[], one_of: None }
}

/// An enumeration: its name, its values and their numbers.
pub(super) type Enum = (&'static str, &'static [(&'static str, i32)]);

/// A field: its name, its number and what it holds.
pub(super) type Field = (&'static str, i32, Holds);

/// What a field holds.
#[derive(Clone, Copy)]
pub(super) enum Holds {
    One(Kind),
    Many(Kind),
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    Bytes,
    Bool,
    I32,
    I64,
    U32,
    U64,
    F64,
    /// By its full name, with a dot before it.
    Message(&'static str),
    Enum(&'static str),
}

pub(super) fn set(files: &[File]) -> FileDescriptorSet {
    FileDescriptorSet { file: files.iter().map(file).collect() }
}

fn file(said: &File) -> FileDescriptorProto {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    FileDescriptorProto {
        name: Some(said.name.to_owned()),
        package: Some(said.package.to_owned()),
        dependency: texts(said.imports),
        message_type: said.messages.iter().map(a_message).collect(),
        enum_type: said.enums.iter().map(an_enum).collect(),
        service: said.service.iter().map(service).collect(),
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    }
}

fn a_message(said: &Message) -> DescriptorProto {
    let one_of = |name: &str| OneofDescriptorProto { name: Some(name.to_owned()), options: None };
    DescriptorProto {
        name: Some(said.name.to_owned()),
        field: said.fields.iter().map(|field| a_field(field, said.one_of.is_some())).collect(),
        nested_type: said.messages.iter().map(a_message).collect(),
        enum_type: said.enums.iter().map(an_enum).collect(),
        oneof_decl: said.one_of.into_iter().map(one_of).collect(),
        ..DescriptorProto::default()
    }
}

fn a_field(&(name, number, holds): &Field, one_of: bool) -> FieldDescriptorProto {
    let (label, kind) = match holds {
        Holds::One(kind) => (Label::Optional, kind),
        Holds::Many(kind) => (Label::Repeated, kind),
    };
    let (kind, of) = match kind {
        Kind::Text => (Type::String, None),
        Kind::Bytes => (Type::Bytes, None),
        Kind::Bool => (Type::Bool, None),
        Kind::I32 => (Type::Int32, None),
        Kind::I64 => (Type::Int64, None),
        Kind::U32 => (Type::Uint32, None),
        Kind::U64 => (Type::Uint64, None),
        Kind::F64 => (Type::Double, None),
        Kind::Message(of) => (Type::Message, Some(of)),
        Kind::Enum(of) => (Type::Enum, Some(of)),
    };
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(label.into()),
        r#type: Some(kind.into()),
        type_name: of.map(str::to_owned),
        oneof_index: one_of.then_some(0),
        ..FieldDescriptorProto::default()
    }
}

fn an_enum(&(name, values): &Enum) -> EnumDescriptorProto {
    let value = |&(name, number): &(&str, i32)| EnumValueDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        options: None,
    };
    EnumDescriptorProto {
        name: Some(name.to_owned()),
        value: values.iter().map(value).collect(),
        ..EnumDescriptorProto::default()
    }
}

fn service((name, [method, request, answer]): &(&str, [&str; 3])) -> ServiceDescriptorProto {
    let method = MethodDescriptorProto {
        name: Some((*method).to_owned()),
        input_type: Some((*request).to_owned()),
        output_type: Some((*answer).to_owned()),
        ..MethodDescriptorProto::default()
    };
    ServiceDescriptorProto { name: Some((*name).to_owned()), method: vec![method], options: None }
}
