//! Others on the machine, and what is theirs: options that an application set, callbacks that
//! another program asked for, memory that is not there.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, socket};
use xcp_engine::{Preset, RouterConfig};
use xcp_linux::endpoint::Give;
use xcp_linux::rehearsal::{Mischief, Neighbour};
use xcp_linux::router::Hook;

use crate::site::{Site, endpoint};
use crate::{MEGABYTE, Plan, congestion, listen, payload, transfer};

/// TCP_SAVE_SYN of an application: 2 is with the link's header.
#[test]
fn what_an_application_has_kept_of_syns_stays() {
    const TCP_SAVE_SYN: i32 = 27;
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::All);
    for wanted in [0i32, 2] {
        let socket: OwnedFd =
            site.d.run(|| socket(AddressFamily::INET, SocketType::STREAM, None).unwrap()).unwrap();
        let (mut is, mut length) = (0i32, 4u32);
        // SAFETY: the buffers are as long as is said, and live as long as the calls.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                TCP_SAVE_SYN,
                (&raw const wanted).cast(),
                4,
            );
            rustix::net::listen(&socket, 8).unwrap();
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                TCP_SAVE_SYN,
                (&raw mut is).cast(),
                &raw mut length,
            );
        }
        assert_eq!(is, if wanted == 0 { 1 } else { wanted });
        // and offers are answered with either
        let listener = TcpListener::from(socket);
        let port = listener.local_addr().unwrap().port();
        let to = (site.address(false), port);
        let client = site.s.run(|| TcpStream::connect(to).unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(congestion(&client), endpoint.name());
        drop(accepted);
    }
}

/// Connections that have nothing to do with XCP are not ours to silence.
#[test]
fn another_programs_callbacks_stay() {
    let Some(site) = Site::new() else { return };
    let neighbour = Neighbour::attach(site.group().as_fd()).unwrap();
    let endpoint = endpoint(&site, Give::Nobody);
    let done = transfer(&site, Plan::new(&endpoint));
    assert_ne!(done.congestion, endpoint.name());
    let asked = neighbour.asked().unwrap();
    assert!(
        asked > 20,
        "another program was asked {asked} times for connections that inherit its callbacks"
    );
}

/// Room that another program has made in a SYN-ACK is not ours: who offered nothing gets no answer
/// to an offer, which something on the way may drop.
#[test]
fn another_programs_room_stays_empty() {
    let Some(site) = Site::new() else { return };
    let _neighbour = Neighbour::attach(site.group().as_fd()).unwrap();
    let _endpoint = endpoint(&site, Give::Nobody);
    let _refusing = site.middlebox(true, Mischief::Refuse);
    let listener = listen(&site, false);
    let to = listener.local_addr().unwrap();
    site.s.run(|| TcpStream::connect_timeout(&to, Duration::from_secs(10)).unwrap()).unwrap();
}

/// A connection without storage cannot be governed: another congestion control takes over, where
/// the window would stay as it is for good.
#[test]
fn without_memory_the_fallback_takes_over() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::All);
    let _router = site.router(20_000_000, Hook::Any);
    let listener = listen(&site, false);
    let mut socket =
        site.s.run(|| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    assert_eq!(congestion(&socket), endpoint.name());
    endpoint.forget(socket.as_fd()).unwrap();
    let reader = thread::spawn(move || {
        let mut data = vec![0; MEGABYTE];
        other.read_exact(&mut data).unwrap();
        data
    });
    socket.write_all(&payload(MEGABYTE)).unwrap();
    assert!(reader.join().unwrap() == payload(MEGABYTE));
    assert_eq!(congestion(&socket), "reno");
}

/// A container's programs may give their packets priorities, and htb takes those for its classes:
/// its own number for none of them, which is past the shaper.
#[test]
fn nobody_passes_the_shaper_by_a_priority() {
    const SLOW_BPS: u64 = 80_000;
    let Some(site) = Site::new() else { return };
    for preset in [Preset::Xcp, Preset::Robust] {
        let law = RouterConfig::preset(preset, SLOW_BPS / 8);
        let router = site.router_of(SLOW_BPS, Hook::Any, law);
        for priority in [0i32, 0x7863_0000, 0x7870_0000, 0x7863_0001] {
            let before = site.waiting();
            let sent = site.r.run(|| {
                let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
                // SAFETY: the buffer is as long as is said, and lives as long as the call.
                let set = unsafe {
                    libc::setsockopt(
                        socket.as_raw_fd(),
                        libc::SOL_SOCKET,
                        libc::SO_PRIORITY,
                        (&raw const priority).cast(),
                        4,
                    )
                };
                assert_eq!(set, 0);
                // A tenth of a second each.
                (0..40).filter(|_| socket.send_to(&[0; 1000], "10.7.2.1:9").is_ok()).count()
            });
            let wait = site.waiting() - before;
            assert!(wait > 20, "{preset:?}, priority {priority:#x}: of {sent:?} {wait} wait");
        }
        drop(router);
    }
}
