//! Protocol buffers' wire format, as far as it is needed: `https://protobuf.dev/programming-guides/encoding`.
//!
//! By hand: three wire types are a hundred lines, where a generator would be a build dependency. The published schema
//! reads every file back in the Python suite.

/// A message on its way.
#[derive(Debug, Default)]
pub(crate) struct Bytes(pub Vec<u8>);

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

impl Bytes {
    #[inline]
    pub fn raw(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    #[inline]
    fn tag(&mut self, field: u32, wire: u32) {
        self.raw(u64::from(field << 3 | wire));
    }

    /// A whole number, enum or bool.
    #[inline]
    pub fn uint(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.raw(value);
    }

    /// An int64: negative ones take ten bytes.
    #[inline]
    pub fn int(&mut self, field: u32, value: i64) {
        self.uint(field, value as u64);
    }

    #[inline]
    pub fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn text(&mut self, field: u32, text: &str) {
        self.tag(field, LENGTH);
        self.raw(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// A message in this one.
    #[inline]
    pub fn nest(&mut self, field: u32, fill: impl FnOnce(&mut Bytes)) {
        self.tag(field, LENGTH);
        let at = self.0.len();
        self.0.push(0);
        fill(self);
        let length = self.0.len() - at - 1;
        if length < 0x80 {
            self.0[at] = length as u8;
            return;
        }
        // its length takes more than the one byte that was left for it
        let mut own = Bytes::default();
        own.raw(length as u64);
        self.0.splice(at..=at, own.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_specification() {
        let mut bytes = Bytes::default();
        bytes.uint(1, 150);
        bytes.text(2, "testing");
        bytes.nest(3, |inner| inner.uint(1, 150));
        bytes.fixed64(4, 1);
        bytes.int(5, -2);
        let expected = [
            &[0x08, 0x96, 0x01, 0x12, 0x07][..],
            b"testing",
            &[0x1a, 0x03, 0x08, 0x96, 0x01, 0x21, 1, 0, 0, 0, 0, 0, 0, 0],
            &[0x28, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        ];
        assert_eq!(bytes.0, expected.concat());
    }

    #[test]
    fn long_messages_are_told_their_length() {
        let long = "x".repeat(300);
        let mut bytes = Bytes::default();
        bytes.nest(1, |inner| inner.nest(2, |inner| inner.text(3, &long)));
        let mut expected = vec![0x0a, 0xb2, 0x02, 0x12, 0xaf, 0x02, 0x1a, 0xac, 0x02];
        expected.extend(long.bytes());
        assert_eq!(bytes.0, expected);
    }
}
