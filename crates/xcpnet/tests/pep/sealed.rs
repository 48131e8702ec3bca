//! The trunk encrypted: what goes by it arrives as without, cannot be read on its way, and goes by
//! it or not at all.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use xcp_linux::namespace::Namespace;

use super::site::{CLIENT, SERVER, Site};
use super::traffic::{Wish, connect, listen, mix, receive, send, serve};
use super::trunk::{FAR, GRANTED, LISTEN, NEAR, SECRET, Secrets, ask, hears, trunk};
use super::{DELAY, one, until};

const SEALED: &[&str] = &["--trunk-encrypt"];
const MARKER: &[u8] = b"a word that nobody is to read";

/// Reads along on the long link.
struct Reader {
    seen: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Reader {
    fn new(wire: &Namespace) -> Self {
        let all = i32::from((libc::ETH_P_ALL as u16).to_be());
        // SAFETY: a new socket, which is ours alone.
        let open = || unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, all) };
        let fd = wire.run(open).unwrap();
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the kernel has just given us this descriptor.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let (seen, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (seen, ended) = (seen.clone(), ended.clone());
            move || {
                let mut frame = vec![0u8; 65536];
                while !ended.load(Ordering::Relaxed) {
                    // SAFETY: an open socket and a buffer as long as it says.
                    let read = unsafe {
                        libc::recv(
                            socket.as_raw_fd(),
                            frame.as_mut_ptr().cast(),
                            frame.len(),
                            libc::MSG_DONTWAIT,
                        )
                    };
                    match usize::try_from(read) {
                        Ok(read) => {
                            let found = frame[..read].windows(MARKER.len()).any(|w| w == MARKER);
                            seen.fetch_add(usize::from(found), Ordering::Relaxed);
                        }
                        Err(_) => std::thread::sleep(Duration::from_millis(1)),
                    }
                }
            }
        });
        Self { seen, ended, thread }
    }

    fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    fn end(self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// The marker to the server and back.
fn echo(site: &Site, port: u16) {
    let listener = listen(&site.server, SERVER[0], port);
    let mut stream = connect(&site.client, SERVER[0], port).unwrap();
    let (mut accepted, peer) = listener.accept().unwrap();
    assert_eq!((peer.ip().to_string(), peer), (CLIENT[0].to_owned(), stream.local_addr().unwrap()));
    let mut heard = [0; MARKER.len()];
    for _ in 0..3 {
        stream.write_all(MARKER).unwrap();
        accepted.read_exact(&mut heard).unwrap();
        accepted.write_all(&heard).unwrap();
        heard.fill(0);
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(heard, MARKER);
    }
}

#[test]
fn encrypted_everything_arrives_and_nothing_can_be_read() {
    let _one = one();
    let (secrets, Some(site)) = (Secrets::new(), Site::new(DELAY, 0.001)) else { return };
    let Some(near) = secrets.up_with(&site.near, FAR, SECRET, SEALED) else { return };
    let Some(far) = secrets.up_with(&site.far, NEAR, SECRET, SEALED) else { return };
    until("the trunk is up", || [&near, &far].iter().all(|proxy| trunk(proxy, "warm") == 8));
    let reader = Reader::new(&site.wire);
    echo(&site, 5301);
    assert_eq!(near.show()["gateway"]["trunk"]["encrypted"], true);
    // Half-closed by either side first; more at once than wait, so that some have to.
    let wishes: Vec<(Wish, u64)> = (0..16)
        .map(|n| {
            let size = |k: u64| mix(n * 2 + k) % (1 << (mix(n + 200 + k) % 22));
            (Wish { seed: 1000 * (n + 1), down: size(0), reset_at: u64::MAX }, size(1))
        })
        .collect();
    let server = serve(listen(&site.server, SERVER[0], 5302), wishes.len());
    std::thread::scope(|scope| {
        for (wish, up) in &wishes {
            let site = &site;
            scope.spawn(move || {
                let mut stream = connect(&site.client, SERVER[0], 5302).unwrap();
                stream.write_all(&wish.bytes()).unwrap();
                let mut out = stream.try_clone().unwrap();
                let (seed, up) = (wish.seed + 1, *up);
                let sender = std::thread::spawn(move || {
                    send(&mut out, seed, up).unwrap();
                    out.shutdown(Shutdown::Write).unwrap();
                });
                let (read, error) = receive(&mut stream, wish.seed);
                assert!(error.is_none() && read == wish.down, "{read} {error:?}");
                sender.join().unwrap();
            });
        }
    });
    for (seed, read, well) in server.join().unwrap() {
        let (_, up) = wishes.iter().find(|(wish, _)| wish.seed == seed).unwrap();
        assert_eq!((read, well), (*up, true));
    }
    assert_eq!(trunk(&near, "used"), 17, "none went without");
    // A reset is one, and what came before it a prefix.
    let server = serve(listen(&site.server, SERVER[0], 5303), 1);
    let wish = Wish { seed: 77, down: 8 << 20, reset_at: 300_000 };
    let mut stream = connect(&site.client, SERVER[0], 5303).unwrap();
    stream.write_all(&wish.bytes()).unwrap();
    let (read, error) = receive(&mut stream, wish.seed);
    assert!(read <= wish.reset_at);
    assert_eq!(error.expect("a reset").kind(), std::io::ErrorKind::ConnectionReset);
    server.join().unwrap();
    assert_eq!(reader.seen(), 0, "somebody can read it");
    near.down(true);
    far.down(true);
    echo(&site, 5304);
    until("who reads along would have seen it", || reader.seen() >= 6);
    reader.end();
}

#[test]
fn what_is_to_be_encrypted_waits_until_it_can_be() {
    let _one = one();
    let (secrets, Some(site)) = (Secrets::new(), Site::new(DELAY, 0.0)) else { return };
    super::site::route(&site.server, "s0", 9, (2, 1));
    let more = [SEALED, LISTEN].concat();
    let Some(near) = secrets.up_with(&site.near, FAR, SECRET, &more) else { return };
    // The other gateway does not encrypt.
    let Some(far) = secrets.up_with(&site.far, NEAR, SECRET, &[]) else { return };
    until("both calls have failed", || {
        [&near, &far].iter().all(|proxy| trunk(proxy, "failed") > 0)
    });
    let listener = listen(&site.server, SERVER[0], 5311);
    let mut stream = connect(&site.client, SERVER[0], 5311).unwrap();
    stream.write_all(MARKER).unwrap();
    let asking = ask(&site, listener.local_addr().unwrap());
    std::thread::sleep(Duration::from_millis(500));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "it went in the clear");
    let shown = near.show();
    let states: Vec<_> =
        shown["connections"].as_array().unwrap().iter().map(|c| c["state"].as_str()).collect();
    assert_eq!(states, [Some("connecting"); 2]);
    far.down(true);
    let Some(_far) = secrets.up_with(&site.far, NEAR, SECRET, SEALED) else { return };
    listener.set_nonblocking(false).unwrap();
    let mut both: Vec<_> = (0..2).map(|_| listener.accept().unwrap()).collect();
    both.sort_by_key(|(_, peer)| peer.ip().to_string());
    let [(mut diverted, _), (_asked, as_gateway)] = <[_; 2]>::try_from(both).unwrap();
    diverted.read_exact(&mut [0; MARKER.len()]).unwrap();
    assert_eq!(as_gateway.ip().to_string(), NEAR);
    hears(&asking, GRANTED);
}
