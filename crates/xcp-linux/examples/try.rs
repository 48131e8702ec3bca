use std::os::fd::AsFd;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let dev = |n: &str| std::fs::read_to_string(format!("/sys/class/net/{n}/ifindex")).map(|s| s.trim().parse::<u32>().unwrap()).unwrap_or_else(|_| { let c = std::ffi::CString::new(n).unwrap(); unsafe { libc::if_nametoindex(c.as_ptr()) } });
    if a[1] == "router" {
        let mut law = xcp_engine::RouterConfig::xcp(a[3].parse::<u64>().unwrap() / 8);
        law.count_other = true;
        let r = xcp_linux::router::Router::attach(dev(&a[2]), &xcp_linux::router::RouterConfig { law, seed: 1, link_bytes: 14, hook: xcp_linux::router::Hook::Any }).unwrap();
        loop { std::thread::sleep(std::time::Duration::from_secs(2)); println!("{:?}", r.status().unwrap()); }
    } else {
        let mut e = xcp_linux::endpoint::Endpoint::load(&Default::default()).unwrap();
        let d = std::fs::File::open(&a[2]).unwrap();
        e.attach(d.as_fd()).unwrap();
        for spec in &a[3..] { let (ns, dv) = spec.split_once(':').unwrap();
            let ns = ns.to_string(); let dv = dv.to_string();
            std::thread::scope(|s| s.spawn(|| { let f = std::fs::File::open(format!("/run/netns/{ns}")).unwrap(); rustix::thread::move_into_link_name_space(f.as_fd(), None).unwrap(); e.make_room(dev(&dv), true).unwrap(); }).join().unwrap());
        }
        loop { std::thread::sleep(std::time::Duration::from_secs(2)); println!("{:?}", e.counts().unwrap()); for c in e.connections().unwrap() { println!("{:?}", c); } }
    }
}
