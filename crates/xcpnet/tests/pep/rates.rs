//! The long link's two rates: what each direction may have on the way.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use xcp_pep::gateway::state::Place;

use super::site::{OptionsFile, Proxy, SERVER, Site, pep};
use super::traffic::{Wish, attend, connect, listen};
use super::{gateways, one, until};

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
    // 1 Mbit/s of 200 ms is 25 kB, 100 Mbit/s are 2.5 MB; the kernel may keep half for its
    // accounts.
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

#[test]
fn a_modem_may_say_other_rates_and_connections_follow() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(20), 0.0) else { return };
    let Some([_near, far]) =
        gateways(&site, &["--rate", "2mbit", "--rate-in", "2mbit", "--rtt", "40ms"])
    else {
        return;
    };
    let listener = listen(&site.server, SERVER[0], 5034);
    let server = std::thread::spawn(move || attend(listener.accept().unwrap().0));
    let mut stream = connect(&site.client, SERVER[0], 5034).unwrap();
    stream.write_all(&Wish { seed: 1, down: 1 << 30, reset_at: u64::MAX }.bytes()).unwrap();
    let reader = std::thread::spawn({
        let mut stream = stream.try_clone().unwrap();
        move || while stream.read(&mut [0; 10_000]).is_ok_and(|read| read > 0) {}
    });
    let carried = || far.show()["gateway"]["input_traffic"].as_f64().unwrap();
    until("the link is full", || carried() > 1e6);
    let told = pep(&site.far, "rate", &["8mbit"]);
    assert!(
        told.status.success() && String::from_utf8_lossy(&told.stdout).contains("8mbit"),
        "{told:?}"
    );
    // With the next packet.
    let capacity = |proxy: &Proxy| proxy.show()["gateway"]["capacity"].as_f64();
    until("the router knows", || capacity(&far) == Some(8e6));
    until("the connection has followed", || carried() > 4e6);
    // The other gateway is told by its device, and in both directions.
    let told = pep(&site.near, "rate", &["wan", "3mbit", "40mbit"]);
    assert!(told.status.success(), "{told:?}");
    for wrong in [&["0mbit"][..], &["fast"], &["sat0", "1mbit"], &["1mbit", "slow"], &["1mbit"; 3]]
    {
        let refused = pep(&site.near, "rate", wrong);
        assert!(!refused.status.success() && !refused.stderr.is_empty(), "{wrong:?}: {refused:?}");
    }
    let before = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(before.contains("sends 3mbit, receives 40mbit"), "{before}");
    super::traffic::rustix_linger(&stream);
    drop(stream);
    reader.join().unwrap();
    server.join().unwrap();
}

#[test]
fn reload_says_what_it_did_and_what_it_could_not() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(1), 0.0) else { return };
    // A list of one needs no brackets.
    let file = OptionsFile::new("wan = \"wan\"\nlan = \"lan\"\nrate = \"5mbit\"\n");
    let Some(near) = Proxy::up_as(&site.near, "main", &["--config", &file.path()]) else { return };
    let reload = || {
        let told = pep(&site.near, "reload", &[]);
        (
            told.status.success(),
            [&told.stdout[..], &told.stderr[..]].map(|b| String::from_utf8_lossy(b)).concat(),
        )
    };
    assert_eq!(reload(), (true, "nothing was changed\n".to_owned()));
    file.write("exclude = \"port 22\"\nheld = \"64kib\"\nlog = \"debug\"\nrto-max = \"2s\"\n");
    let (well, said) = reload();
    assert!(
        well && said.contains("changed: exclude;")
            && said.contains("restarted: held, rto-max, log"),
        "{said}"
    );
    // A list without the rate: the shaper stays, and so does its rate.
    let bare = OptionsFile::new("wan = \"wan\"\nlan = \"lan\"\n");
    std::fs::copy(bare.path(), file.path()).unwrap();
    let capacity = near.show()["gateway"]["capacity"].clone();
    for _ in 0..2 {
        let (well, said) = reload();
        assert!(well && said.contains("restarted: rate"), "{said}");
        assert!(!said.contains("changed: rate"), "{said}");
        assert_eq!(near.show()["gateway"]["capacity"], capacity);
    }
    file.write("connections = 1000000000\n");
    let (well, said) = reload();
    assert!(
        well && said.contains("changed: connections") && said.contains("descriptors"),
        "{said}"
    );
    // An order that is none, as of another version.
    let place = Place::of(&site.near, "main");
    let error = xcp_pep::run::ask(&place, "main", "dance").unwrap_err().to_string();
    assert!(error.contains("dance"), "{error}");
    file.write("idle = \"soon\"\n");
    let (well, said) = reload();
    assert!(!well && said.contains("idle"), "{said}");
    file.write("lan = 7\n");
    assert!(!reload().0);
    near.down(true);
}
