//! The long link's two rates: what each direction may have on the way.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use super::site::{Proxy, SERVER, Site};
use super::traffic::{Wish, attend, connect, listen};
use super::{one, until};

/// What the peer of the near gateway's long leg may send, as the kernel has it, while a download is
/// on its way.
fn window(site: &Site, near: &Proxy, port: u16) -> u64 {
    let listener = listen(&site.server, SERVER[0], port);
    let server = std::thread::spawn(move || attend(listener.accept().unwrap().0));
    let mut stream = connect(&site.client, SERVER[0], port).unwrap();
    stream.write_all(&Wish { seed: 1, down: 1 << 30, reset_at: u64::MAX }.bytes()).unwrap();
    stream.read_exact(&mut [0; 100_000]).unwrap();
    let window = near.show()["connections"][0]["server_leg"]["receive_window"].as_u64().unwrap();
    super::traffic::rustix_linger(&stream);
    drop(stream);
    server.join().unwrap();
    until("it is over", || near.show()["connections"].as_array().unwrap().is_empty());
    window
}

#[test]
fn a_window_is_for_what_comes_not_for_what_goes() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(20), 0.0) else { return };
    // 1 Mbit/s of 200 ms is 25 kB, 100 Mbit/s are 2.5 MB; the kernel may keep half for its accounts.
    for (port, rates, least, most) in [
        (5031, &["--rate", "1mbit", "--rate-in", "100mbit"][..], 2_500_000, 10_000_000),
        // Not said: many times what goes.
        (5032, &["--rate", "1mbit"], 2_500_000, 20_000_000),
        (5033, &["--rate", "100mbit", "--rate-in", "1mbit"], 40_000, 300_000),
    ] {
        let arguments = [&["--rtt", "200ms"], rates].concat();
        let Some(near) = Proxy::up(&site.near, &arguments) else { return };
        let window = window(&site, &near, port);
        assert!((least..=most).contains(&window), "{rates:?}: {window} bytes");
        near.down(true);
    }
}
