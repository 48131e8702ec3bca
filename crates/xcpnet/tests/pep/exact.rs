//! Bytes, whatever happens: packets lost and overtaken, connections reset by either end, a proxy
//! killed, another restarted. What arrives is a prefix of what was sent, and all of it unless there
//! was a reset. `bench/pep/run exact` is the same with gigabytes.

use std::io::{self, Cursor, ErrorKind, Write as _};
use std::net::{Shutdown, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use xcp_lab::line::Reorder;

use crate::site::{Proxy, SERVER, Site};
use crate::traffic::{self, Wish, attend, connect, listen, mix, receive, send};
use crate::{RATE, gateways, leftovers, one, until};

const PORT: u16 = 5010;
/// The stream's number tells how long it is upwards, so that both ends know.
fn up(seed: u64) -> u64 {
    mix(seed) % (1 << (mix(seed + 1) % 20 + 2))
}

/// Serves until it is told to stop. Returns streams, bytes, and how many were reset.
fn serve(listener: &TcpListener, stop: &AtomicBool) -> (u64, u64, u64) {
    listener.set_nonblocking(true).unwrap();
    let mut each = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).unwrap();
                each.push(std::thread::spawn(move || attend(stream)));
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => sleep(Duration::from_millis(2)),
            Err(e) => panic!("{e}"),
        }
    }
    each.into_iter().map(|thread| thread.join().unwrap()).fold(
        (0, 0, 0),
        |(streams, bytes, reset), (seed, read, well)| {
            assert!(
                !well || read == up(seed),
                "stream {seed} ended well after {read} bytes of {}",
                up(seed)
            );
            assert!(read <= up(seed));
            (streams + 1, bytes + read, reset + u64::from(!well))
        },
    )
}

/// One connection; returns the bytes that came.
fn ask(site: &Site, seed: u64) -> io::Result<u64> {
    let wish = Wish {
        seed,
        down: mix(seed + 2) % (1 << (mix(seed + 3) % 20 + 2)),
        reset_at: if seed.is_multiple_of(7) { mix(seed + 4) % 50_000 } else { u64::MAX },
    };
    let mut stream = connect(&site.client, SERVER[0], PORT)?;
    stream.write_all(&wish.bytes())?;
    let mut out = stream.try_clone()?;
    let cut = seed.is_multiple_of(11);
    let sender = std::thread::spawn(move || -> io::Result<()> {
        send(&mut out, wish.seed + 1, if cut { up(seed) / 2 } else { up(seed) })?;
        if cut {
            traffic::rustix_linger(&out);
            return Ok(());
        }
        out.shutdown(Shutdown::Write)
    });
    let (read, error) = receive(&mut stream, seed);
    let sent = sender.join().unwrap();
    assert!(read <= wish.down);
    // Where it was cut by this end, reading ends without an error.
    assert!(
        error.is_some() || sent.is_err() || cut || read == wish.down,
        "stream {seed} ended well after {read} bytes of {}",
        wish.down
    );
    Ok(read)
}

#[test]
fn whatever_happens_what_arrives_is_a_prefix() {
    let _one = one();
    let reorder = Reorder { probability: 0.02, most: 5_000_000 };
    let Some(site) = Site::with_reordering(Duration::from_millis(5), 0.001, reorder) else {
        return;
    };
    let before = leftovers(&site.near);
    let Some([near, far]) = gateways(&site, RATE) else { return };
    let listener = listen(&site.server, SERVER[0], PORT);
    let (stop, quiet) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, &stop));
        let clients: Vec<_> = (0..8u64)
            .map(|client| {
                let (site, quiet) = (&site, &quiet);
                scope.spawn(move || {
                    let mut bytes = 0;
                    for number in 0u64.. {
                        bytes += ask(site, 1 + client * 100_000 + number * 10).unwrap_or(0);
                        if quiet.load(Ordering::Relaxed) && number >= 10 {
                            break;
                        }
                    }
                    bytes
                })
            })
            .collect();
        // In the middle of it.
        until("the near proxy carries something", || {
            near.show()["connections"].as_array().is_some_and(|all| !all.is_empty())
        });
        near.signal(libc::SIGKILL);
        std::mem::forget(near);
        until("the keeper has cleaned up", || leftovers(&site.near) == before);
        let near = Proxy::up(&site.near, RATE).expect("up again");
        until("the far proxy carries something", || {
            far.show()["connections"].as_array().is_some_and(|all| !all.is_empty())
        });
        far.down(true);
        let far = Proxy::up(&site.far, RATE).expect("up again");
        quiet.store(true, Ordering::Relaxed);
        let down: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
        // What clients have reset may still be on its way.
        until("nothing is carried", || {
            near.show()["connections"].as_array().is_some_and(Vec::is_empty)
                && far.show()["connections"].as_array().is_some_and(Vec::is_empty)
        });
        stop.store(true, Ordering::Relaxed);
        let (streams, up, reset) = server.join().unwrap();
        assert!(
            streams >= 80 && reset > 0 && reset < streams && up > 1 << 20 && down > 1 << 20,
            "{streams} streams, {up} up, {down} down, {reset} reset"
        );
    });
}

/// A test of the test: what is wrong is seen.
#[test]
fn a_wrong_byte_is_seen() {
    let mut bytes = Vec::new();
    send(&mut bytes, 5, 100_000).unwrap();
    assert_eq!(receive(&mut Cursor::new(&bytes), 5).0, 100_000);
    let seen =
        |bytes: Vec<u8>| std::panic::catch_unwind(|| receive(&mut Cursor::new(&bytes), 5)).is_err();
    let mut changed = bytes.clone();
    changed[77_777] ^= 1;
    assert!(seen(changed));
    assert!(seen([&bytes[..500], &bytes[501..]].concat()), "one is missing");
    assert!(seen([&bytes[..500], &bytes[499..]].concat()), "one came twice");
    assert!(seen(bytes[1..].to_vec()), "the first is missing");
}
