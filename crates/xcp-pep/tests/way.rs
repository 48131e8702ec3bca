//! One way of a connection against a model: whatever source, sink and store do, what leaves is what
//! came, in order, once, then the end; and the store never holds more than it may.

use std::collections::VecDeque;
use std::io;

use proptest::prelude::*;
use xcp_pep::relay::way::{Broken, Filled, Medium, Wait, Way};

/// What happens around the way before a pump.
#[derive(Debug, Clone)]
enum Event {
    /// The source sends so many bytes.
    Arrive(usize),
    /// The source ends.
    Finish,
    /// The sink has room for so many more.
    Room(usize),
    /// The store has slots for so many more pieces.
    Slots(usize),
    /// The source breaks.
    SourceBreaks,
    /// The sink breaks.
    SinkBreaks,
}

#[derive(Debug, Default)]
struct Model {
    /// Bytes are numbers, so that order is seen.
    source: VecDeque<u32>,
    next: u32,
    finished: bool,
    store: VecDeque<u32>,
    slots: usize,
    room: usize,
    out: Vec<u32>,
    ended: bool,
    broken: [bool; 2],
    idle: bool,
    /// Direct writing is possible, too.
    direct: bool,
    /// The end takes room, too.
    end_takes: bool,
}

impl Medium for Model {
    fn fill(&mut self, room: usize, empty: bool) -> Result<Filled, Broken> {
        assert_eq!(empty, self.store.is_empty());
        assert!(room > 0);
        self.idle = false;
        if self.broken[0] {
            return Err(Broken { source: true, why: io::ErrorKind::ConnectionReset.into() });
        }
        if self.source.is_empty() {
            return Ok(if self.finished { Filled::End } else { Filled::Blocked });
        }
        let read = room.min(self.source.len()).min(7);
        if empty && self.direct {
            let written = read.min(self.room);
            self.room -= written;
            self.out.extend(self.source.drain(..written));
            self.store.extend(self.source.drain(..read - written));
            let dry = self.source.is_empty() && !self.finished;
            return Ok(Filled::Some { read, kept: read - written, dry });
        }
        if self.slots == 0 {
            // Full of small pieces, unless it is empty: then there are slots.
            if !empty {
                return Ok(Filled::Blocked);
            }
            self.slots = 3;
        }
        self.slots -= 1;
        self.store.extend(self.source.drain(..read));
        Ok(Filled::Some { read, kept: read, dry: false })
    }

    fn drain(&mut self, held: usize) -> Result<Option<usize>, Broken> {
        assert_eq!(held, self.store.len());
        if self.broken[1] {
            return Err(Broken { source: false, why: io::ErrorKind::BrokenPipe.into() });
        }
        let written = held.min(self.room);
        if written == 0 {
            return Ok(None);
        }
        self.room -= written;
        self.out.extend(self.store.drain(..written));
        Ok(Some(written))
    }

    fn end(&mut self) -> Result<bool, Broken> {
        assert!(!self.ended && self.store.is_empty() && self.source.is_empty() && self.finished);
        self.ended = self.room > 0 || !self.end_takes;
        Ok(self.ended)
    }

    fn idle(&mut self) {
        assert!(self.store.is_empty());
        self.idle = true;
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => (1usize..60).prop_map(Event::Arrive),
        6 => (1usize..60).prop_map(Event::Room),
        2 => (0usize..4).prop_map(Event::Slots),
        1 => Just(Event::Finish),
        1 => Just(Event::SourceBreaks),
        1 => Just(Event::SinkBreaks),
    ];
    proptest::collection::vec(event, 1..80)
}

proptest! {
    #[test]
    fn what_leaves_is_what_came(events in events(), capacity in 1usize..40, turn in 1usize..30, direct in any::<bool>(), end_takes in any::<bool>()) {
        let (mut model, mut way) = (Model { direct, end_takes, ..Model::default() }, Way::default());
        for event in events {
            match event {
                Event::Arrive(n) if !model.finished => for _ in 0..n {
                    model.source.push_back(model.next);
                    model.next += 1;
                },
                Event::Finish => model.finished = true,
                Event::Room(n) => model.room += n,
                Event::Slots(n) => model.slots = n,
                Event::SourceBreaks => model.broken[0] = true,
                Event::SinkBreaks => model.broken[1] = true,
                Event::Arrive(_) => {}
            }
            let outcome = loop {
                let before = model.out.len();
                match way.pump(&mut model, capacity, turn) {
                    Ok(Wait::Turn) => prop_assert!(model.out.len() >= before + turn, "a turn is \
                        used up before it ends"),
                    other => break other,
                }
            };
            prop_assert!(way.held() <= capacity.max(7) && way.held() == model.store.len());
            prop_assert_eq!(way.passed(), model.out.len() as u64);
            prop_assert!(model.out.iter().copied().eq(0..model.out.len() as u32), "a prefix, in order, once");
            match outcome {
                // Nothing is left lying that could go.
                Ok(Wait::Source) => prop_assert!(model.source.is_empty() && model.store.is_empty() && model.idle && !model.finished),
                Ok(Wait::Sink) => prop_assert!(model.room == 0 && (!model.store.is_empty() || way.ended() && end_takes)),
                Ok(Wait::Done) => prop_assert!(model.ended && model.out.len() as u32 == model.next),
                Ok(Wait::Turn) => unreachable!(),
                Err(why) => {
                    prop_assert!(model.broken[usize::from(!why.source)]);
                    return Ok(());
                }
            }
        }
    }
}
