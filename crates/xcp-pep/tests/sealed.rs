//! Both ends of an encrypted connection of the trunk, over real sockets: what leaves is what came,
//! with its urgent byte in its place, and an end only where one was said.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;

use proptest::prelude::*;
use rustix::net::{SendFlags, send};
use xcp_pep::relay::pipe::Pool;
use xcp_pep::relay::sealed::{Closing, Opening, Sealed};
use xcp_pep::relay::way::{Broken, Wait, Way};
use xcp_pep::relay::wire::{COPY, Store};
use xcp_pep::trunk::seal::{Kind, MOST, OVERHEAD, Seal, Shaking};
use xcp_pep::trunk::words::{OPEN, Secret};

const HELD: usize = 64 << 10;
const TURN: usize = 100_000;

fn pair() -> [TcpStream; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let other = listener.accept().unwrap().0;
    for stream in [&one, &other] {
        stream.set_nonblocking(true).unwrap();
        rustix::net::sockopt::set_socket_oobinline(stream, true).unwrap();
    }
    [one, other]
}

fn seals() -> [Box<Seal>; 2] {
    let secret = Secret::new(b"0123456789abcdef").unwrap();
    let (shaking, call) = Shaking::call(&secret, b"").unwrap();
    let (theirs, answer) = Shaking::answer(&secret, b"", &call).unwrap();
    [Box::new(shaking.answered(&answer).unwrap()), Box::new(theirs)]
}

/// One way: client, closing gateway, opening gateway, server.
struct Line {
    client: TcpStream,
    ends: [TcpStream; 4],
    server: TcpStream,
    sealed: [Sealed; 2],
    stores: [Store; 2],
    ways: [Way; 2],
    pool: Pool,
    scratch: Vec<u8>,
}

impl Line {
    /// With pipes for so many bytes. The opening gateway waits for the other one's word.
    fn new(memory: usize) -> Self {
        let [client, from_client] = pair();
        let [to_trunk, from_trunk] = pair();
        let [to_server, server] = pair();
        let [mut ours, theirs] = seals();
        let mut word = Vec::new();
        ours.close(Kind::Word, &[OPEN], &mut word).unwrap();
        (&to_trunk).write_all(&word).unwrap();
        Self {
            client,
            ends: [from_client, to_trunk, from_trunk, to_server],
            server,
            sealed: [Sealed::new(ours, false), Sealed::new(theirs, true)],
            stores: Default::default(),
            ways: Default::default(),
            pool: Pool::new(HELD, memory),
            scratch: vec![0; COPY],
        }
    }

    fn close(&mut self) -> Result<Wait, Broken> {
        let mut medium = Closing {
            source: self.ends[0].as_fd(),
            sink: self.ends[1].as_fd(),
            sealed: &mut self.sealed[0],
            store: &mut self.stores[0],
            pool: &mut self.pool,
            scratch: &mut self.scratch,
        };
        self.ways[0].pump(&mut medium, HELD, TURN)
    }

    fn open(&mut self) -> Result<Wait, Broken> {
        let mut medium = Opening {
            source: self.ends[2].as_fd(),
            sink: self.ends[3].as_fd(),
            sealed: &mut self.sealed[1],
            store: &mut self.stores[1],
            pool: &mut self.pool,
            scratch: &mut self.scratch,
        };
        self.ways[1].pump(&mut medium, HELD, TURN)
    }
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n * 7 + n / 251) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_leaves_is_what_came(
        length in 0usize..600_000,
        reads in prop::collection::vec(1usize..200_000, 1..20),
        memory in prop::sample::select(vec![HELD, 4 * HELD]),
        lends in any::<bool>(),
    ) {
        let mut line = Line::new(memory);
        // Others may have all of the pipes.
        let lent: Vec<_> = if lends { std::iter::from_fn(|| line.pool.lend()).collect() } else { Vec::new() };
        let all = bytes(length);
        let (mut wrote, mut got, mut ended) = (0, Vec::new(), false);
        let mut rounds = reads.iter().cycle();
        let mut idle = 0;
        while !ended {
            let before = (wrote, got.len());
            if wrote < all.len() {
                wrote += line.client.write(&all[wrote..]).unwrap_or(0);
            }
            if wrote == all.len() {
                let _ = line.client.shutdown(Shutdown::Write);
            }
            prop_assert!(line.close().is_ok() && line.open().is_ok());
            prop_assert!(line.ways.iter().all(|way| way.held() <= HELD + COPY));
            let mut buffer = vec![0; *rounds.next().unwrap()];
            match line.server.read(&mut buffer) {
                Ok(0) => ended = true,
                Ok(read) => got.extend_from_slice(&buffer[..read]),
                Err(_) => {}
            }
            idle = if before == (wrote, got.len()) { idle + 1 } else { 0 };
            prop_assert!(idle < 20_000, "it stands still at {} of {}", got.len(), all.len());
        }
        prop_assert!(got == all);
        prop_assert_eq!(line.ways.each_ref().map(Way::passed), [length as u64; 2]);
        prop_assert_eq!(line.pool.use_of().1, lent.len(), "pipes come back");
    }
}

#[test]
fn the_urgent_byte_keeps_its_place() {
    let mut line = Line::new(HELD);
    line.client.write_all(b"before").unwrap();
    send(&line.client, b"!", SendFlags::OOB).unwrap();
    line.stores[0].urgent = true;
    let mut got = Vec::new();
    let mut marked = None;
    for round in 0..2000 {
        if round == 1000 {
            line.client.write_all(b"after").unwrap();
        }
        line.close().unwrap();
        line.open().unwrap();
        let mut byte = [0; 1];
        if rustix::net::sockopt::socket_oobinline(&line.server).unwrap() && at_mark(&line.server) {
            marked.get_or_insert(got.len());
        }
        if line.server.read(&mut byte).is_ok_and(|read| read == 1) {
            got.push(byte[0]);
        }
    }
    assert_eq!(String::from_utf8_lossy(&got), "before!after");
    assert_eq!(marked, Some(6));
}

fn at_mark(stream: &TcpStream) -> bool {
    use std::os::fd::AsRawFd as _;
    let mut mark: libc::c_int = 0;
    // SAFETY: an open socket; the argument is an int that outlives the call.
    unsafe { libc::ioctl(stream.as_raw_fd(), 0x8905, &raw mut mark) };
    mark != 0
}

/// What has to end as a connection that broke: the end that TCP tells is not the other gateway's.
#[test]
fn who_is_cut_off_has_not_ended() {
    let mut line = Line::new(HELD);
    line.client.write_all(&bytes(3 * MOST)).unwrap();
    for _ in 0..100 {
        line.close().unwrap();
        line.open().unwrap();
    }
    line.ends[1].shutdown(Shutdown::Write).unwrap();
    let broken = (0..1000).find_map(|_| line.open().err()).expect("it broke");
    assert!(broken.source);
    assert_eq!(broken.why.kind(), std::io::ErrorKind::ConnectionReset);
    assert!(!line.ways[1].ended());
    // In the middle of a frame, or with one that was changed.
    for change in [false, true] {
        let mut line = Line::new(HELD);
        let [mut ours, theirs] = seals();
        line.sealed[1] = Sealed::new(theirs, false);
        let mut frame = Vec::new();
        ours.close(Kind::Data, &bytes(1000), &mut frame).unwrap();
        // The word of the line's own beginning is in front of it.
        let mut first = [0; OVERHEAD + 1];
        line.ends[2].set_nonblocking(false).unwrap();
        line.ends[2].read_exact(&mut first).unwrap();
        line.ends[2].set_nonblocking(true).unwrap();
        if change {
            frame[500] ^= 1;
            line.ends[1].write_all(&frame).unwrap();
        } else {
            line.ends[1].write_all(&frame[..600]).unwrap();
            line.ends[1].shutdown(Shutdown::Write).unwrap();
        }
        assert!((0..1000).any(|_| line.open().is_err()), "changed: {change}");
        assert_eq!(line.ways[1].passed(), 0);
    }
}
