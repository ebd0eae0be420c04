//! How busy the machine's processors are.

use std::fs;

use dashpot::Percent;

/// Measures from one question to the next.
#[derive(Debug)]
pub(super) struct Meter {
    /// Busy and in all, in ticks of the kernel's since it started. `None` if nobody looks, or nobody tells.
    last: Option<(u64, u64)>,
}

impl Meter {
    pub(super) fn start(looks: bool) -> Self {
        Self { last: if looks { read() } else { None } }
    }

    /// How busy they were since it was last asked. `None` if that is not known, or too short ago.
    pub(super) fn since_last(&mut self) -> Option<Percent> {
        let (busy, all) = self.last?;
        let (busy_now, all_now) = read()?;
        let passed = all_now.checked_sub(all).filter(|passed| *passed > 0)?;
        self.last = Some((busy_now, all_now));
        Some(Percent::of(busy_now.saturating_sub(busy).min(passed), passed))
    }
}

/// What Linux tells in the first line of this file. A read of it is about 20 µs, once in a tick.
fn read() -> Option<(u64, u64)> {
    parse(&fs::read_to_string("/proc/stat").ok()?)
}

fn parse(text: &str) -> Option<(u64, u64)> {
    let mut words = text.lines().next()?.split_ascii_whitespace();
    if words.next()? != "cpu" {
        return None;
    }
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are part of the first two.
    let times: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
    let all: u64 = times.iter().sum();
    let idle = times.get(3)?.saturating_add(times.get(4).copied().unwrap_or(0));
    Some((all.saturating_sub(idle), all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_neither_idle_nor_waiting_is_busy() {
        let text = "cpu  100 20 30 800 50 3 2 5 70 8\ncpu0 1 2 3 4\n";
        assert_eq!(parse(text), Some((160, 1010)));
        for text in ["", "cpu", "cpu 1 2 3", "intr 1 2 3 4 5"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_tells() {
        assert!(read().is_some_and(|(busy, all)| 0 < busy && busy <= all));
        assert!(Meter::start(true).last.is_some());
        assert_eq!(Meter::start(false).since_last(), None);
    }
}
