//! Files that the proxy reads: its options (TOML) and what it wrote down to be taken back (JSON).
//! The first byte says which.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xcp_pep::gateway::state::State;
use xcp_pep::options::Options;

fuzz_target!(|data: &[u8]| {
    let Some((which, rest)) = data.split_first() else { return };
    if which & 1 == 0 {
        let Some(options) =
            std::str::from_utf8(rest).ok().and_then(|text| toml::from_str::<Options>(text).ok())
        else {
            return;
        };
        let said = [
            options.rate_bps().err(),
            options.rate_in_bps().err(),
            options.rtt_ns().err(),
            options.memory().err(),
            options.workers().err(),
            options.drain().err(),
            options.excludes().err(),
            options.windows().err(),
            options.settings(Some("xcp"), 1).err(),
        ];
        for error in said.into_iter().flatten() {
            // It says which key is wrong.
            assert!(error.to_string().contains(':'), "{error}");
        }
        if let Ok(windows) = options.windows() {
            assert!(
                [windows.send, windows.receive]
                    .iter()
                    .all(|window| (128 << 10..=256 << 20).contains(window))
            );
        }
        assert!(options.differences(&options).is_empty());
        assert_eq!(options.clone().over(Options::default()), options);
        assert_eq!(Options::default().over(options.clone()), options);
    } else if let Ok(state) = serde_json::from_slice::<State>(rest) {
        let again = serde_json::to_vec(&state).expect("it can be written");
        let read: State = serde_json::from_slice(&again).expect("it can be read");
        assert_eq!(format!("{state:?}"), format!("{read:?}"));
        // No process has such a number, whatever the file says.
        if state.pid == 0 || state.pid > i32::MAX as u32 {
            assert_eq!(xcp_pep::gateway::state::start_time(state.pid), None);
        }
    }
});
