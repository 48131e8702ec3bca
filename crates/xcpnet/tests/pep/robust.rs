//! The robust law and its senders on the long link: a modem that carries less than was said.

use std::io::Write as _;
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use super::link::lent;
use super::site::{OptionsFile, Proxy, SERVER, Site, pep};
use super::traffic::{Wish, attend, connect, listen, read_all, receive};
use super::{gateways, one};

const DELAY: Duration = Duration::from_millis(50);
const SAID: &[&str] = &["--rate", "20mbit", "--rtt", "100ms"];
const MODEM_BPS: u64 = 10_000_000;
/// Three of the link's products of rate and round trip.
const MODEM_PACKETS: u64 = 250;

/// What became of a download.
#[derive(Debug)]
struct Download {
    /// Mean of the smoothed round trips across the link.
    rtt: Duration,
    /// What the client got of the modem's rate.
    part: f64,
    /// Packets beyond its first window that a second connection was lent beside it.
    lent: u64,
}

/// A download by a law, between gateways that were told twice the modem's rate, from the second
/// `warm_up` on, for `seconds`.
fn download(law: &str, port: u16, warm_up: u64, seconds: u64) -> Option<Download> {
    let site = Site::with_modem(DELAY, MODEM_BPS, MODEM_PACKETS)?;
    let [_near, far] = gateways(&site, &[SAID, &["--law", law]].concat())?;
    let listener = listen(&site.server, SERVER[0], port);
    let server = spawn(move || {
        let both = [(); 2].map(|()| {
            let (stream, _) = listener.accept().unwrap();
            spawn(move || attend(stream))
        });
        for one in both {
            one.join().unwrap();
        }
    });
    let mut stream = connect(&site.client, SERVER[0], port).unwrap();
    stream.write_all(&Wish { seed: 1, down: 1 << 30, reset_at: u64::MAX }.bytes()).unwrap();
    let (read, reader) = read_all(&stream);
    sleep(Duration::from_secs(warm_up));
    let (begin, before) = (Instant::now(), read.load(Ordering::Relaxed));
    let (mut sum, mut times) = (0, 0);
    while begin.elapsed().as_secs() < seconds {
        sum += far.show()["connections"][0]["client_leg"]["srtt_ns"].as_u64().unwrap();
        times += 1;
        sleep(Duration::from_millis(50));
    }
    let bits = 8 * (read.load(Ordering::Relaxed) - before);
    let part = bits as f64 / begin.elapsed().as_secs_f64() / MODEM_BPS as f64;
    let before = lent(&far, "rest");
    let mut second = connect(&site.client, SERVER[0], port).unwrap();
    second.write_all(&Wish { seed: 2, down: 200_000, reset_at: u64::MAX }.bytes()).unwrap();
    second.shutdown(Shutdown::Write).unwrap();
    assert_eq!(receive(&mut second, 2).0, 200_000);
    let lent = lent(&far, "rest") - before;
    super::traffic::rustix_linger(&stream);
    drop(stream);
    reader.join().unwrap();
    server.join().unwrap();
    Some(Download { rtt: Duration::from_nanos(sum / times), part, lent })
}

#[test]
fn a_modem_that_carries_half_of_what_was_said_has_a_short_queue() {
    let _one = one();
    let Some(other) = download("p-xcp", 5061, 3, 1) else { return };
    let Some(robust) = download("robust", 5062, 6, 4) else { return };
    eprintln!("p-xcp: {other:?}; robust: {robust:?}");
    // Of 1448 bytes in 1514 on the wire, .956 can be data.
    assert!(robust.part > 0.85, "{robust:?}");
    assert!(robust.rtt < DELAY * 2 * 13 / 10, "{robust:?}");
    assert_eq!(robust.lent, 0, "what is free is not known where senders are bound by a queue");
    assert!(other.rtt > DELAY * 2 * 2, "what it is good for is not to be seen here: {other:?}");
}

fn law(proxy: &Proxy) -> String {
    proxy.show()["gateway"]["law"].as_str().unwrap_or_default().to_owned()
}

/// What `reload` answers, and whether it did anything.
fn reload(site: &Site) -> (bool, String) {
    let told = pep(&site.near, "reload", &[]);
    let said = if told.status.success() { &told.stdout } else { &told.stderr };
    (told.status.success(), String::from_utf8_lossy(said).into_owned())
}

/// The law that nobody has named is chosen at the start; what it does not do, `reload` refuses.
#[test]
fn reload_refuses_what_does_not_go_with_the_law() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(1), 0.0) else { return };
    let file = OptionsFile::new("wan = \"wan\"\nlan = \"lan\"\nrate = \"5mbit\"\n");
    for named in ["law = \"robust\"\n", ""] {
        file.write(named);
        let Some(near) = Proxy::up_as(&site.near, "main", &["--config", &file.path()]) else {
            return;
        };
        assert_eq!(law(&near), "robust");
        // Another law in the file is for the next start; what runs is still this one.
        for more in [
            &format!("{named}urgent = \"ef:10%\"\n"),
            "share = \"address\"\n",
            "law = \"p-xcp\"\nshare = \"address\"\n",
        ] {
            file.write(&format!("{more}rate-in = \"7mbit\"\n"));
            let (well, said) = reload(&site);
            assert!(!well && said.contains("`robust`"), "{more}: {said}");
        }
        let shown = pep(&site.near, "show", &[]);
        assert!(String::from_utf8_lossy(&shown.stdout).contains("by the law robust"), "{shown:?}");
        file.write(&format!("{named}rate-in = \"7mbit\"\n"));
        assert_eq!(reload(&site), (true, "changed: rate-in\n".to_owned()));
        near.down(true);
    }
}

/// Who needs what `robust` does not have gets the other law, and keeps it until the next start.
#[test]
fn the_law_is_one_that_does_what_is_asked_for() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(1), 0.0) else { return };
    let file = OptionsFile::new("wan = \"wan\"\nlan = \"lan\"\n");
    for (more, named) in [("", "robust"), ("rate = \"5mbit\"\nshare = \"address\"\n", "p-xcp")] {
        file.write(more);
        let Some(near) = Proxy::up_as(&site.near, "main", &["--config", &file.path()]) else {
            return;
        };
        assert_eq!(law(&near), named, "{more}");
        near.down(true);
    }
    file.write("rate = \"5mbit\"\nurgent = \"ef:10%\"\n");
    let Some(near) = Proxy::up_as(&site.near, "main", &["--config", &file.path()]) else { return };
    for more in ["", "urgent = \"ef:10%\"\n", "share = \"address\"\n", ""] {
        file.write(&format!("rate = \"5mbit\"\n{more}"));
        let (well, said) = reload(&site);
        assert!(well, "{more}: {said}");
        assert_eq!(law(&near), "p-xcp", "{more}");
    }
    near.down(true);
    let Some(near) = Proxy::up_as(&site.near, "main", &["--config", &file.path()]) else { return };
    assert_eq!(law(&near), "robust", "nothing speaks against it any more");
    near.down(true);
}

/// Gateways are restarted one after the other.
#[test]
fn gateways_of_different_laws_understand_each_other() {
    let _one = one();
    for (near_law, far_law) in [("p-xcp", "robust"), ("robust", "p-xcp")] {
        let Some(site) = Site::new(DELAY, 0.0) else { return };
        let with = |law| [SAID, &["--law", law]].concat();
        let Some(near) = Proxy::up(&site.near, &with(near_law)) else { return };
        let Some(far) = Proxy::up(&site.far, &with(far_law)) else { return };
        let listener = listen(&site.server, SERVER[0], 5063);
        let server = spawn(move || attend(listener.accept().unwrap().0));
        let mut stream = connect(&site.client, SERVER[0], 5063).unwrap();
        stream.write_all(&Wish { seed: 3, down: 10 << 20, reset_at: u64::MAX }.bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(receive(&mut stream, 3).0, 10 << 20);
        server.join().unwrap();
        // Ordinary TCP would bring as much as fast, so who agreed counts.
        for gateway in [&near, &far] {
            let endpoint = &gateway.show()["gateway"]["endpoint"];
            assert!(endpoint["agreed"].as_u64() > Some(0), "{near_law}, {far_law}: {endpoint}");
            assert_eq!(endpoint["fallen_peer"], 0, "{near_law}, {far_law}: {endpoint}");
        }
    }
}
