//! Parts of JSON: texts that are borrowed if they can be, objects that are nothing else.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A text; part of the JSON it was read from, unless something in it was escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        from.deserialize_str(Reader)
    }
}

impl JsonSchema for Text<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// Something that is written as an object. By itself it would be read from a list as well, field by field.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        from.deserialize_map(Reader(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Object<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A header's value, or several.
#[derive(Debug)]
pub(crate) struct Lines<'a>(pub(crate) Vec<Text<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Lines<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Lines<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Lines<'de>, E> {
                Ok(Lines(vec![Text(Cow::Borrowed(text))]))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Lines<'de>, E> {
                Ok(Lines(vec![Text(Cow::Owned(text.to_owned()))]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Lines<'de>, A::Error> {
                let mut lines = Vec::new();
                while let Some(line) = list.next_element()? {
                    lines.push(line);
                }
                Ok(Lines(lines))
            }
        }

        from.deserialize_any(Reader)
    }
}

impl JsonSchema for Lines<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Lines".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" } },
        ] })
    }
}
