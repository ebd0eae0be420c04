use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// What a rule counts by: the field as it is found, folded.
fn json_field(body: &[u8], path: &str) -> Option<String> {
    let document = serde_json::from_slice(body).ok()?;
    fold(&super::json_field(&document, path)?)
}

fn form_field(body: &[u8], name: &str) -> Option<String> {
    fold(&super::form_field(body, name)?)
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

#[test]
fn a_query_is_decoded() {
    let query = "a=1&b=x%20y+z&c&d=%ff&=7&e%3D=8&a=%31&g=1&g=2";
    let found = |name| query_field(query, name);
    assert_eq!(found("a").as_deref(), Some("1"));
    assert_eq!(found("b").as_deref(), Some("x y z"));
    assert_eq!(found("c"), None);
    assert_eq!(found("d").as_deref(), Some("\u{fffd}"));
    assert_eq!(found("e=").as_deref(), Some("8"));
    assert_eq!(found("f"), None);
    // Which of the two a server reads, nobody knows.
    assert_eq!(found("g"), None);
}

#[test]
fn cookies_are_found_in_every_line() {
    let headers =
        headers(&[("cookie", "a=1; b=\"two\";c = x=y ; \u{e9}=3; d="), ("cookie", "a=other; e=5")]);
    let found = |name| cookie_field(&headers, name);
    assert_eq!(found("a"), Some("1"));
    assert_eq!(found("b"), Some("two"));
    assert_eq!(found("c"), Some("x=y"));
    assert_eq!(found("d"), None);
    assert_eq!(found("e"), Some("5"));
    assert_eq!(found("A"), None);
}

#[test]
fn json_fields_are_found_by_path() {
    let body = br#"{"email": " Alice@X.com\n", "user": {"id": 7, "on": true, "no": null},
        "list": [1], "user.id": 8, "twice": "a", "twice": "b", "blank": " ", "f": 7.50}"#;
    let found = |path| json_field(body, path);
    assert_eq!(found("email").as_deref(), Some("alice@x.com"));
    assert_eq!(found("user.id").as_deref(), Some("7"));
    assert_eq!(found("user.on").as_deref(), Some("true"));
    assert_eq!(found("twice").as_deref(), Some("b"));
    assert_eq!(found("f").as_deref(), Some("7.5"));
    for none in ["user", "user.no", "list", "list.0", "blank", "", ".", "user.", "user.id.x"] {
        assert_eq!(found(none), None, "{none}");
    }
    assert_eq!(json_field(b"7", ""), None);
    assert_eq!(json_field(b"{\"a\":1} x", "a"), None);
    assert_eq!(json_field(&b"[".repeat(100_000), "a"), None);
}

#[test]
fn a_number_has_one_spelling() {
    for (written, plain) in [
        ("7.0", "7"),
        ("70e-1", "7"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1e300", "1e+300"),
    ] {
        let body = format!("{{\"id\":{written}}}");
        assert_eq!(json_field(body.as_bytes(), "id").as_deref(), Some(plain), "{written}");
    }
}

#[test]
fn a_form_is_decoded_and_folded() {
    let body = b"email=+Alice%40X.com+&empty=&n=7&two=a&two=b";
    assert_eq!(form_field(body, "email").as_deref(), Some("alice@x.com"));
    assert_eq!(form_field(body, "n").as_deref(), Some("7"));
    assert_eq!(form_field(body, "empty"), None);
    assert_eq!(form_field(body, "two"), None);
}

#[test]
fn the_kind_of_content_is_told_by_its_headers() {
    for (kind, name) in [
        (ContentKind::Json, "application/json"),
        (ContentKind::Json, "Application/JSON ; charset=utf-8"),
        (ContentKind::Json, "application/vnd.api+json"),
        (ContentKind::Form, "application/x-www-form-urlencoded;charset=UTF-8"),
        (ContentKind::Other, "multipart/form-data; boundary=application/json"),
        (ContentKind::Other, "text/plain"),
        (ContentKind::Other, ""),
    ] {
        assert_eq!(content_kind(&headers(&[("content-type", name)])), kind, "{name}");
    }
    for (kind, coding) in [
        (ContentKind::Json, "identity"),
        (ContentKind::Json, ""),
        (ContentKind::Other, "gzip"),
        (ContentKind::Other, "identity, br"),
    ] {
        let lines = [("content-type", "application/json"), ("content-encoding", coding)];
        assert_eq!(content_kind(&headers(&lines)), kind, "{coding}");
    }
    assert_eq!(content_kind(&HeaderMap::new()), ContentKind::Other);
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec(("[ab]", inner), 0..4).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_will_do(
        bytes in vec(any::<u8>(), 0..200),
        name in "[ab.%=\"]{0,3}",
        line in "[\\x20-\\x7e\u{80}-\u{ff}]{0,40}",
    ) {
        let _ = json_field(&bytes, &name);
        let _ = form_field(&bytes, &name);
        let _ = query_field(&String::from_utf8_lossy(&bytes), &name);
        let mut headers = HeaderMap::new();
        for header in [COOKIE, CONTENT_TYPE, CONTENT_ENCODING] {
            headers.insert(header, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        let _ = (cookie_field(&headers, &name), content_kind(&headers));
    }

    #[test]
    fn what_was_encoded_is_found(name in "\\PC{1,8}", value in "\\PC{1,8}", other in "\\PC{0,8}") {
        prop_assume!(name != other);
        let mut query = form_urlencoded::Serializer::new(String::new());
        let query = query.append_pair(&other, "x").append_pair(&name, &value).finish();
        prop_assert_eq!(query_field(&query, &name), Some(Cow::from(&value)));
        let folded = value.trim().to_lowercase();
        let found = form_field(query.as_bytes(), &name);
        prop_assert_eq!(found.as_deref(), (!folded.is_empty()).then_some(&*folded));
    }

    #[test]
    fn a_path_leads_where_a_pointer_does(document in json(), path in vec("[ab]", 1..4)) {
        // Read back, as floats are not always read as they were written.
        let written = document.to_string();
        let document = serde_json::from_str::<Value>(&written).unwrap();
        let expected = match document.pointer(&format!("/{}", path.join("/"))) {
            Some(Value::String(text)) => Some(text.trim().to_lowercase()),
            Some(Value::Bool(truth)) => Some(truth.to_string()),
            Some(Value::Number(number)) if !number.is_f64() => Some(number.to_string()),
            Some(Value::Number(number)) => Some(plain_number(number)),
            _ => None,
        };
        let found = json_field(written.as_bytes(), &path.join("."));
        prop_assert_eq!(found, expected.filter(|text| !text.is_empty()));
    }

    #[test]
    fn a_plain_number_is_still_that_number(float in any::<f64>()) {
        if let Value::Number(number) = json!(float) {
            prop_assert_eq!(plain_number(&number).parse::<f64>(), Ok(float));
        }
    }
}
