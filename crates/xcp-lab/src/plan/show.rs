//! A plan as a text, for people and for tests.

use std::fmt;

use xcp_model::steps::Steps;
use xcp_model::units::Nanos;
use xcp_model::{Limit, Loss, Reorder};

use super::{DeviceId, Kind, Line, Meter, Plan, Shaper};

/// Nanoseconds as milliseconds.
struct Ms(Nanos);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0 as f64 / 1e6)
    }
}

/// What takes a value's place later.
struct Later<'a>(&'a Steps, fn(u64) -> String);

impl fmt::Display for Later<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut later = self.0.steps().iter().skip(1);
        later.try_for_each(|&(at, value)| write!(f, ", from {} on {}", Ms(at), (self.1)(value)))
    }
}

/// A device with its namespace.
struct At<'a>(&'a Plan, DeviceId);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = &self.0.devices[self.1];
        write!(f, "{}:{}", self.0.spaces[device.space].name, device.name)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for space in &self.spaces {
            let sack = space.sack.map_or("", |on| if on { ", sack" } else { ", no sack" });
            writeln!(f, "namespace {} ({:?}{sack})", space.name, space.role)?;
        }
        let large = match self.segments {
            None => ", packets of any number of segments".to_owned(),
            Some(1) => String::new(),
            Some(n) => format!(
                ", packets of up to {n} segments{}",
                if self.cut { ", cut up by queues" } else { "" }
            ),
        };
        writeln!(f, "mtu {}{large}", self.mtu)?;
        for &[one, other] in &self.cables {
            writeln!(f, "cable {} - {}", At(self, one), At(self, other))?;
        }
        for &(device, peer) in &self.neighbours {
            writeln!(f, "beyond {} is {}", At(self, device), At(self, peer))?;
        }
        for (number, shaper) in self.shapers.iter().enumerate() {
            self.show_shaper(f, number, shaper)?;
        }
        for line in &self.lines {
            self.show_line(f, line)?;
        }
        for (direction, meter) in self.meters.iter().enumerate() {
            match meter {
                Meter::Shaper(number) => {
                    writeln!(f, "direction {direction} is counted by queue {number}")?
                }
                Meter::Line(number) => {
                    writeln!(f, "direction {direction} is counted by line {number}")?
                }
                Meter::Device(device) => {
                    writeln!(f, "direction {direction} is counted by {}", At(self, *device))?
                }
            }
        }
        for (number, way) in self.ways.iter().enumerate() {
            let [source, destination] = [way.source, way.destination]
                .map(|(space, address)| (&self.spaces[space].name, address));
            writeln!(
                f,
                "way {number} from {} {} to {} {}",
                source.0, source.1, destination.0, destination.1
            )?;
        }
        for route in &self.routes {
            write!(
                f,
                "route in {} to {} by {}",
                self.spaces[route.space].name, route.to, self.devices[route.device].name
            )?;
            if let Some(window) = route.initial_window {
                write!(f, ", initial window {window}")?;
            }
            writeln!(f, "{}", if route.quick_ack { ", quick acknowledgements" } else { "" })?;
        }
        for flow in &self.flows {
            write!(f, "flow on way {} port {}", flow.way, flow.port)?;
            match flow.start {
                Some(start) => write!(f, " starts {}", Ms(start))?,
                None => write!(f, " never starts")?,
            }
            if let Some(stop) = flow.stop {
                write!(f, " stops {}", Ms(stop))?;
            }
            match &flow.kind {
                Kind::Udp { payload, .. } => write!(f, ": datagrams of {payload} bytes")?,
                Kind::Tcp(tcp) => {
                    write!(
                        f,
                        ": {} mss {}",
                        tcp.congestion.as_deref().unwrap_or("our xcp"),
                        tcp.mss
                    )?;
                    if let Some(bytes) = tcp.window_clamp {
                        write!(f, ", window at most {bytes}")?;
                    }
                    if let Some(segments) = tcp.send_segments {
                        write!(f, ", send buffer {segments} segments")?;
                    }
                    if let Some(bytes) = tcp.unsent_bytes {
                        write!(f, ", unsent at most {bytes}")?;
                    }
                    if tcp.connects_early > 0 {
                        write!(f, ", connects {} early", Ms(tcp.connects_early))?;
                    }
                }
            }
            writeln!(f)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

impl Plan {
    fn show_shaper(
        &self,
        f: &mut fmt::Formatter<'_>,
        number: usize,
        shaper: &Shaper,
    ) -> fmt::Result {
        let router = if shaper.router { ", XCP router" } else { "" };
        let limit = match shaper.limit {
            Limit::Packets(n) => format!("{n} packets"),
            Limit::Bytes(n) => format!("{n} bytes"),
        };
        writeln!(
            f,
            "queue {number} at {} of direction {}: {} bit/s{}, {limit}{router}",
            At(self, shaper.device),
            shaper.direction,
            shaper.rates.at(0),
            Later(&shaper.rates, |rate| format!("{rate} bit/s"))
        )
    }

    fn show_line(&self, f: &mut fmt::Formatter<'_>, line: &Line) -> fmt::Result {
        let [input, output] = [line.input, line.output].map(|device| &self.devices[device].name);
        write!(
            f,
            "line {input} > {output} of direction {}: {}{}",
            line.direction,
            Ms(line.delays.at(0)),
            Later(&line.delays, |delay| Ms(delay).to_string())
        )?;
        for Loss { probability, period, .. } in &line.losses {
            write!(f, ", loses {probability} from {} to {}", Ms(period.from), Ms(period.to))?;
        }
        for period in &line.blackouts {
            write!(f, ", dark from {} to {}", Ms(period.from), Ms(period.to))?;
        }
        if let Some(Reorder { probability, most }) = line.reorder {
            write!(f, ", delays {probability} by up to {}", Ms(most))?;
        }
        writeln!(
            f,
            "{}{}",
            if line.before_queue { ", before the queue" } else { "" },
            if line.queue { ", queue" } else { "" }
        )
    }
}
