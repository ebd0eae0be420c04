//! Short text on the stack: what goes into a header is written on every request.

use std::fmt;

/// Bytes that stay on the stack unless they outgrow it.
pub(crate) struct Text<const N: usize> {
    short: [u8; N],
    length: usize,
    /// Everything, once it is too long for the stack.
    long: Vec<u8>,
}

impl<const N: usize> Text<N> {
    pub(crate) const fn new() -> Self {
        Self { short: [0; N], length: 0, long: Vec::new() }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        if self.long.is_empty() {
            self.short.get(..self.length).unwrap_or_default()
        } else {
            &self.long
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let end = self.length.saturating_add(bytes.len());
        match self.short.get_mut(self.length..end) {
            Some(room) if self.long.is_empty() => room.copy_from_slice(bytes),
            _ => self.push_long(bytes),
        }
        self.length = end;
    }

    #[cold]
    fn push_long(&mut self, bytes: &[u8]) {
        if self.long.is_empty() {
            self.long.extend_from_slice(self.short.get(..self.length).unwrap_or_default());
        }
        self.long.extend_from_slice(bytes);
    }

    /// Writes a number in decimal.
    #[inline]
    pub(crate) fn push_number(&mut self, number: u64) {
        let mut digits = [b'0'; 20];
        let mut rest = number;
        let mut length = 0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' | u8::try_from(rest % 10).unwrap_or_default();
            rest /= 10;
            length += 1;
            if rest == 0 {
                break;
            }
        }
        self.push(digits.get(20 - length..).unwrap_or_default());
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_usual() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, 999_999_999_999_999, u64::MAX] {
            let mut text = Text::<64>::new();
            text.push_number(number);
            assert_eq!(text.as_bytes(), number.to_string().as_bytes());
        }
    }

    #[test]
    fn what_is_too_long_for_the_stack_is_kept_whole() {
        let mut text = Text::<8>::new();
        let mut whole = Vec::new();
        for part in ["abc", "", "defgh", "", "i", "jklmnopqrst", "u"] {
            text.push(part.as_bytes());
            whole.extend_from_slice(part.as_bytes());
            assert_eq!(text.as_bytes(), whole);
        }
    }
}
