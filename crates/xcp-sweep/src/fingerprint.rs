// Hashes by FNV-1a with 128 bits: tells apart contents that nobody chose to collide. Taken into
// build.rs as well as into the library.

/// A hash in the making.
pub struct Fingerprint(u128);

impl Fingerprint {
    /// A fingerprint of nothing yet.
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

    /// The fingerprint as 32 hexadecimal digits.
    pub fn hex(&self) -> String {
        format!("{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    /// The crates of this workspace that one is made of, itself included.
    fn made_of(crates: &Path, name: &str, found: &mut BTreeSet<String>) {
        if !found.insert(name.to_owned()) {
            return;
        }
        let manifest = std::fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
        let (_, dependencies) = manifest.split_once("\n[dependencies]\n").unwrap_or_default();
        for line in dependencies.lines().take_while(|line| !line.starts_with('[')) {
            let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if dependency.starts_with("xcp-") {
                made_of(crates, dependency, found);
            }
        }
    }

    /// A crate that the simulator is made of and that `build.rs` does not name would give old
    /// results out of the cache for new ones.
    #[test]
    fn all_that_the_simulator_and_the_reader_are_made_of_is_in_it() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = BTreeSet::new();
        made_of(&own.join(".."), "xcp-sim", &mut found);
        made_of(&own.join(".."), "xcp-scenario", &mut found);
        assert!(found.len() >= 5, "{found:?}");
        let build = std::fs::read_to_string(own.join("build.rs")).unwrap();
        for name in found {
            assert!(
                build.contains(&format!("\"crates/{name}/src\"")),
                "build.rs leaves out {name}"
            );
        }
    }
}
