//! The edge to JavaScript. A request is written into memory that [`allocate`] gave, [`answer`]
//! takes it, and the answer lies where [`answer_at`] says until the next request. While a run goes
//! on it calls `partial` with what there is, and `stops` to hear whether to go on; `clock` only
//! decides how often it does. A failure tells `failed` what it was and ends in a trap: the page
//! then makes a new engine.

use std::cell::RefCell;

use serde_json::json;
use xcp_model::Scenario;
use xcp_model::record::Recorder;
use xcp_model::units::Nanos;

use crate::session::{Page, Session, seconds, series_places, so_far};

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Milliseconds since some time.
    safe fn clock() -> f64;
    /// What there is, as JSON.
    safe fn partial(at: *const u8, length: usize);
    /// What went wrong.
    safe fn failed(at: *const u8, length: usize);
}

/// Partial results come no oftener, milliseconds.
const PAUSE: f64 = 60.0;

thread_local! {
    static SESSION: RefCell<Session> = RefCell::default();
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
}

struct Streaming {
    last: f64,
}

impl Page for Streaming {
    // Who has had enough ends the worker.
    fn wants_to_go_on(&mut self) -> bool {
        true
    }

    fn partial(&mut self, now: Nanos, scenario: &Scenario, recorder: &Recorder<'_>) {
        let time = clock();
        if time - self.last < PAUSE {
            return;
        }
        self.last = time;
        let times: Vec<f64> = recorder.times().iter().map(|&t| seconds(t)).collect();
        let series: Vec<_> = so_far(scenario, recorder).collect();
        let text = json!({
            "now": seconds(now),
            "times": [times.as_ptr() as usize, times.len()],
            "series": series_places(&series),
        })
        .to_string();
        partial(text.as_ptr(), text.len());
    }
}

/// Memory for a request.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    Box::leak(vec![0u8; length].into_boxed_slice()).as_mut_ptr()
}

/// Answers the request that lies there, and gives its memory back. Returns the answer's length.
///
/// # Safety
/// `request` and `length` are what [`allocate`] returned and got, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn answer(request: *mut u8, length: usize) -> usize {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        failed(text.as_ptr(), text.len());
    }));
    // SAFETY: the caller's promise: a boxed slice of this length that nobody else has.
    let request = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(request, length)) };
    let text = String::from_utf8_lossy(&request);
    let answer =
        SESSION.with_borrow_mut(|session| session.answer(&text, &mut Streaming { last: clock() }));
    ANSWER.with_borrow_mut(|kept| {
        *kept = answer;
        kept.len()
    })
}

/// Where the last answer lies.
#[unsafe(no_mangle)]
pub extern "C" fn answer_at() -> *const u8 {
    ANSWER.with_borrow(|kept| kept.as_ptr())
}
