//! A file of options that is read again: all of it takes effect, or nothing.

use std::io::{Read as _, Write as _};
use std::process::Command;

use super::owner::carries;
use super::site::{OptionsFile, Proxy, SERVER, Site, pep, skipped};
use super::traffic::{connect, listen};
use super::{DELAY, one, until};

fn run(site: &Site, program: &str, words: &str) -> Option<String> {
    let words: Vec<&str> = words.split(' ').collect();
    let output = site.near.run(|| Command::new(program).args(&words).output()).unwrap().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn of_a_change_that_fails_nothing_takes_effect() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let file = OptionsFile::new("wan = \"wan\"\nlan = \"lan\"\nrtt = \"40ms\"\n");
    file.write("rate = \"50mbit\"\n");
    let Some(near) = Proxy::up_as(&site.near, "main", &["--config", &file.path()]) else { return };
    // Whose rate nobody can change then.
    if run(&site, "tc", "qdisc del dev wan root").is_none() {
        return xcp_skip::skipped!("tc", "a shaper that somebody takes away");
    }
    let exclude = |rate: &str| file.write(&format!("rate = \"{rate}\"\nexclude = \"port 5061\"\n"));
    exclude("40mbit");
    let refused = pep(&site.near, "reload", &[]);
    assert!(!refused.status.success(), "{refused:?}");
    assert_eq!(near.show()["gateway"]["capacity"], 50e6);
    assert!(carries(&site, &near, SERVER[0], 5061), "the port is left alone");
    // Alone it could be done.
    exclude("50mbit");
    let told = pep(&site.near, "reload", &[]);
    assert!(told.status.success(), "{told:?}");
    assert!(!carries(&site, &near, SERVER[0], 5061), "the port is not left alone");
    near.down(true);
}

#[test]
fn a_proxy_that_is_ending_diverts_nothing_again() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    // It ends when this test lets it.
    let file = OptionsFile::new("wan = \"wan\"\nlan = \"lan\"\ndrain = \"8h\"\n");
    let up = pep(&site.near, "up", &["--config", &file.path()]);
    if !up.status.success() {
        return skipped(String::from_utf8_lossy(&up.stderr));
    }
    let mut near = Proxy { namespace: &site.near, name: "main", pid: 0 };
    near.pid = near.show()["pid"].as_u64().unwrap() as u32;
    let Some(rules) = run(&site, "nft", "list table inet xcpnet_pep") else {
        return xcp_skip::skipped!("nft", "the rules of a proxy that is ending");
    };
    assert!(rules.contains("tproxy"), "{rules}");
    let listener = listen(&site.server, SERVER[0], 5062);
    let mut stream = connect(&site.client, SERVER[0], 5062).unwrap();
    stream.write_all(b"x").unwrap();
    let (mut there, _) = listener.accept().unwrap();
    there.read_exact(&mut [0; 1]).unwrap();
    near.signal(libc::SIGTERM);
    until("it drains", || near.show()["draining"] == true);
    file.write("exclude = \"port 22\"\n");
    let told = pep(&site.near, "reload", &[]);
    assert!(told.status.success(), "{told:?}");
    let rules = run(&site, "nft", "list table inet xcpnet_pep").unwrap();
    assert!(!rules.contains("tproxy"), "{rules}");
    near.down(true);
}
