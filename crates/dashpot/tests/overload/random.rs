/// Numbers that look random and are the same every time, on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Anything from so much less than `mean` to so much more, all as likely: `spread` is 0 to 1.
    pub(crate) fn around(&mut self, mean: u64, spread: f64) -> u64 {
        let least = mean as f64 * (1.0 - spread);
        let part = self.next() as f64 / (1_u64 << 53) as f64;
        (least + 2.0 * mean as f64 * spread * part) as u64
    }
}
