// Hashes by FNV-1a with 128 bits: tells apart contents that nobody chose to collide. Taken into
// build.rs as well as into the library.

/// A hash in the making.
pub struct Fingerprint(u128);

impl Fingerprint {
    /// Of nothing yet.
    #[allow(clippy::new_without_default, reason = "nobody wants a hash of nothing")]
    pub fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Adds bytes and their number, so that `ab` + `c` is not `a` + `bc`.
    pub fn add(&mut self, bytes: &[u8]) {
        self.mix(bytes);
        self.mix(&(bytes.len() as u64).to_le_bytes());
    }

    /// Adds bytes that are a piece of something longer.
    pub fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte))
                .wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    /// 32 digits.
    pub fn hex(&self) -> String {
        format!("{:032x}", self.0)
    }
}
