//! The messages as JSON, by proto3's mapping: camelCase or as in the file, names or numbers, and what is left out is
//! nothing.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::message::{
    self, Code, RateLimitDescriptor, RateLimitOverride, RateLimitRequest, RateLimitResponse, Unit,
};
use crate::serve::text::Object;

/// A call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Call {
    /// What the descriptors are about.
    #[schemars(length(min = 1), required)]
    domain: Option<String>,
    /// What is asked about; all of them pass, or none is counted.
    #[schemars(length(min = 1, max = 64), required)]
    descriptors: Option<Vec<Object<Descriptor>>>,
    /// What it costs for descriptors that do not say.
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Number<MAX_32>>,
}

/// Something that is asked about.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Descriptor {
    #[schemars(length(min = 1, max = 32), required)]
    entries: Option<Vec<Object<Entry>>>,
    /// A limit that wins over what is configured.
    limit: Option<Object<Limit>>,
    /// What it costs; 0 only looks.
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Number<{ u64::MAX }>>,
    /// Gives so much back instead.
    #[serde(alias = "is_negative_hits")]
    is_negative_hits: Option<bool>,
}

/// A key and a value.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    #[schemars(length(min = 1), required)]
    key: Option<String>,
    value: Option<String>,
}

/// So many in a unit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Limit {
    #[serde(alias = "requests_per_unit")]
    requests_per_unit: Option<Number<MAX_32>>,
    #[schemars(required)]
    unit: Option<NamedUnit>,
}

impl From<Call> for RateLimitRequest {
    fn from(call: Call) -> Self {
        let descriptors = call.descriptors.unwrap_or_default();
        Self {
            domain: call.domain.unwrap_or_default(),
            descriptors: descriptors.into_iter().map(|Object(one)| one.into()).collect(),
            hits_addend: call.hits_addend.unwrap_or_default().low(),
        }
    }
}

impl From<Descriptor> for RateLimitDescriptor {
    fn from(descriptor: Descriptor) -> Self {
        let limit = |Object(limit): Object<Limit>| RateLimitOverride {
            requests_per_unit: limit.requests_per_unit.unwrap_or_default().low(),
            unit: limit.unit.map_or(0, |unit| unit.0),
        };
        let entries = descriptor.entries.unwrap_or_default();
        Self {
            entries: entries.into_iter().map(|Object(entry)| entry.into()).collect(),
            limit: descriptor.limit.map(limit),
            hits_addend: descriptor.hits_addend.map(|hits| hits.0),
            is_negative_hits: descriptor.is_negative_hits.unwrap_or_default(),
        }
    }
}

impl From<Entry> for message::Entry {
    fn from(entry: Entry) -> Self {
        Self { key: entry.key.unwrap_or_default(), value: entry.value.unwrap_or_default() }
    }
}

const MAX_32: u64 = u32::MAX as u64;

/// A whole number up to a largest one, which may be written as a text.
#[derive(Clone, Copy, Debug, Default)]
struct Number<const MAX: u64>(u64);

impl Number<MAX_32> {
    fn low(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl<'de, const MAX: u64> Deserialize<'de> for Number<MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader<const MAX: u64>;

        impl<const MAX: u64> Visitor<'_> for Reader<MAX> {
            type Value = Number<MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from 0 to {MAX}")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Number<MAX>, E> {
                if number > MAX {
                    return Err(Error::invalid_value(Unexpected::Unsigned(number), &self));
                }
                Ok(Number(number))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Number<MAX>, E> {
                // `3.0` is a whole number, too; beyond what those can tell apart, none is.
                let low = (number.fract() == 0.0).then(|| number.to_string().parse::<u32>());
                match low {
                    Some(Ok(low)) => Ok(Number(low.into())),
                    _ => Err(Error::invalid_value(Unexpected::Float(number), &self)),
                }
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Number<MAX>, E> {
                // Signs are no digits.
                let number = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse());
                match number {
                    Some(Ok(number)) if number <= MAX => Ok(Number(number)),
                    _ => Err(Error::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }

        from.deserialize_any(Reader)
    }
}

impl<const MAX: u64> JsonSchema for Number<MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": MAX },
            { "type": "string", "pattern": "^[0-9]{1,9}$" },
        ] })
    }
}

/// A unit, by its name or number. One that nobody knows by its number is told later.
#[derive(Clone, Copy, Debug)]
struct NamedUnit(i32);

impl<'de> Deserialize<'de> for NamedUnit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = NamedUnit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<NamedUnit, E> {
                let known = Unit::named(name).filter(|unit| unit.name() == name);
                let known = known.map(|unit| NamedUnit(unit.into()));
                known.ok_or_else(|| Error::invalid_value(Unexpected::Str(name), &self))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<NamedUnit, E> {
                Ok(NamedUnit(i32::try_from(number).unwrap_or(i32::MAX)))
            }
        }

        from.deserialize_any(Reader)
    }
}

impl JsonSchema for NamedUnit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Unit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "enum": ["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"] },
            { "type": "integer", "minimum": 1, "maximum": 7 },
        ] })
    }
}

/// The answer to a call.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Told<'a> {
    overall_code: &'static str,
    statuses: Vec<ToldStatus<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    response_headers_to_add: Vec<ToldHeader<'a>>,
}

/// How one descriptor stands.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ToldStatus<'a> {
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_limit: Option<ToldLimit<'a>>,
    #[serde(default, skip_serializing_if = "is_zero")]
    limit_remaining: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_until_reset: Option<String>,
}

/// A limit.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ToldLimit<'a> {
    #[serde(default, skip_serializing_if = "is_zero")]
    requests_per_unit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

/// A header for the caller.
#[derive(Debug, Serialize, JsonSchema)]
struct ToldHeader<'a> {
    key: &'a str,
    value: &'a str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl<'a> From<&'a RateLimitResponse> for Told<'a> {
    fn from(response: &'a RateLimitResponse) -> Self {
        let limit = |limit: &'a message::RateLimit| ToldLimit {
            requests_per_unit: limit.requests_per_unit,
            unit: Unit::numbered(limit.unit).map(Unit::name),
            name: &limit.name,
        };
        let status = |status: &'a message::DescriptorStatus| ToldStatus {
            code: name(status.code),
            current_limit: status.current_limit.as_ref().map(limit),
            limit_remaining: status.limit_remaining,
            duration_until_reset: status
                .duration_until_reset
                .map(|time| format!("{}s", time.seconds)),
        };
        let header = |header: &'a message::HeaderValue| ToldHeader {
            key: &header.key,
            value: &header.value,
        };
        Self {
            overall_code: name(response.overall_code),
            statuses: response.statuses.iter().map(status).collect(),
            response_headers_to_add: response.response_headers_to_add.iter().map(header).collect(),
        }
    }
}

fn name(code: i32) -> &'static str {
    match Code::try_from(code) {
        Ok(Code::Ok) => "OK",
        Ok(Code::OverLimit) => "OVER_LIMIT",
        _ => "UNKNOWN",
    }
}
