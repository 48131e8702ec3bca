//! The kernel's own TCP beside a sender that claims an eighth of its window, which makes the law
//! give it eight times as much: what it gains, and what honest senders lose, without a policer and
//! with one.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use xcp_engine::PolicerConfig;
use xcp_linux::endpoint::Give;
use xcp_linux::police::{Police, PoliceBy};
use xcp_linux::router::Hook;

use crate::site::{LIE_PORT, Site, endpoint};

const RATE_BPS: u64 = 20_000_000;
/// A queue that is to stand: 100 ms, as there is no other delay here.
const TARGET_BYTES: u64 = 250_000;
const FLOWS: usize = 5;
/// Until all have their share, and how long is measured then.
const SETTLING: Duration = Duration::from_secs(12);
const MEASURED: Duration = Duration::from_secs(12);

/// What each flow brought to D, bytes in the measured time; the first one is the liar's, if there
/// is one.
struct Brought([f64; FLOWS]);

impl Brought {
    fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    /// The first one, in its fair share of what all brought.
    fn gain(&self) -> f64 {
        self.0[0] * FLOWS as f64 / self.total()
    }

    /// The others'.
    fn honest(&self) -> f64 {
        self.total() - self.0[0]
    }
}

fn run(lies: bool, police: Option<Police>) -> Option<Brought> {
    let site = Site::new()?;
    let _endpoint = endpoint(&site, Give::All);
    let mut law = xcp_engine::RouterConfig::xcp(RATE_BPS / 8);
    law.queue_target_bytes = TARGET_BYTES;
    let router = site.router_policed(RATE_BPS, Hook::Any, law, police);
    let _liar = lies.then(|| site.liar());
    let port = |flow: usize| if flow == 0 { LIE_PORT } else { 0 };
    let listen =
        |flow| TcpListener::bind(SocketAddr::new(site.address(false), port(flow))).unwrap();
    let listeners: Vec<TcpListener> =
        (0..FLOWS).map(|flow| site.d.run(|| listen(flow)).unwrap()).collect();
    let (over, counts) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; FLOWS]);
    let (brought, status) = thread::scope(|scope| {
        for (listener, count) in listeners.iter().zip(&counts) {
            let to = listener.local_addr().unwrap();
            let (mut sender, over) =
                (site.s.run(|| TcpStream::connect(to).unwrap()).unwrap(), &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) && sender.write_all(&[0; 1 << 14]).is_ok() {}
            });
            let (mut receiver, _) = listener.accept().unwrap();
            scope.spawn(move || {
                let mut data = vec![0; 1 << 16];
                while let Ok(n @ 1..) = receiver.read(&mut data) {
                    count.fetch_add(n as u64, Ordering::Relaxed);
                }
            });
        }
        let read = || counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        thread::sleep(SETTLING);
        let before = read();
        thread::sleep(MEASURED);
        let after = read();
        let status = router.status().unwrap();
        over.store(true, Ordering::Relaxed);
        (Brought(std::array::from_fn(|flow| (after[flow] - before[flow]) as f64)), status)
    });
    println!(
        "lies: {lies}: {:?} bytes, {:?}, {:?}, {} dropped",
        brought.0,
        status.policing,
        status.state,
        site.dropped()
    );
    assert_eq!(status.policing.is_some(), police.is_some());
    site.assert_checksums();
    Some(brought)
}

#[test]
fn a_liar_gains_nothing_where_senders_are_policed() {
    let police = Police {
        config: PolicerConfig { seed: 0x5eed, ..PolicerConfig::DEFAULT },
        by: PoliceBy::Flow,
    };
    let Some(before) = run(false, None) else { return };
    let Some(taken) = run(true, None) else { return };
    let Some(policed) = run(true, Some(police)) else { return };
    let share = before.total() / FLOWS as f64;
    assert!(taken.gain() > 2.0, "the liar does not even gain unpoliced: {:.2}", taken.gain());
    assert!(policed.gain() <= 1.05, "the liar gains {:.3}", policed.gain());
    let honest = policed.honest() / (share * (FLOWS - 1) as f64);
    assert!(honest >= 0.97, "honest flows have {honest:.3} of what they would have");
}
