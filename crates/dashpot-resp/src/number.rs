//! Whole numbers as text.

/// A number as Redis reads lengths: no plus, no leading zeros, nothing around it.
pub(crate) fn strict(digits: &[u8]) -> Option<i64> {
    let is_written_so = matches!(digits, [b'0'] | [b'-', b'1'..=b'9', ..] | [b'1'..=b'9', ..]);
    if is_written_so { loose(digits) } else { None }
}

/// A number as redis-cell reads it: with a sign or without, and any number of zeros before it.
pub(crate) fn loose(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    // So many cannot be too many.
    if digits.len() <= 18 {
        let mut number = 0_i64;
        for &byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number * 10 + i64::from(digit);
        }
        return Some(if is_negative { -number } else { number });
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_rust_reads_them() {
        for text in [
            "0",
            "-0",
            "+0",
            "7",
            "007",
            "+5",
            "-5",
            "",
            "+",
            "-",
            "--1",
            "1 ",
            " 1",
            "1.0",
            "1e3",
            "999999999999999999",
            "-999999999999999999",
            "1000000000000000000",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "-9223372036854775809",
            "000000000000000000000000000012",
            "é",
            "٣",
        ] {
            assert_eq!(loose(text.as_bytes()), text.parse().ok(), "{text}");
        }
        assert_eq!(loose(b"\xff"), None);
    }

    #[test]
    fn lengths_have_one_spelling() {
        for (text, number) in [
            ("0", Some(0)),
            ("12", Some(12)),
            ("-1", Some(-1)),
            ("-0", None),
            ("+1", None),
            ("01", None),
            ("", None),
            ("-", None),
            (" 1", None),
            ("1a", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
        ] {
            assert_eq!(strict(text.as_bytes()), number, "{text}");
        }
    }
}
