//! Runs as a picture: what passed and what did not, and what passed within a window's length.

use std::time::Duration;

use crate::plot::{BLUE, Bars, Line, Panel, Plot, Points, RED, head, marks, round_step};
use crate::run::Run;
use crate::series::Series;
use crate::text;

/// How wide each half is.
const HALF: f64 = 460.0;

/// How high each run is.
const ROW: f64 = 118.0;

/// Around all of them.
const AROUND: f64 = 70.0;

const GREY: &str = "#777";

/// Runs, one below the other: on the left what passed (blue) and what was denied (red), on the right what passed within the
/// window's length before, with the limit.
#[must_use]
pub fn picture(title: &str, runs: &[Run]) -> String {
    let length = runs.iter().map(|run| run.length).max().unwrap_or_default();
    let time = Time::of(length);
    let size = (HALF, AROUND + ROW * runs.len() as f64);
    let highest = |run: &Run| run.series.counts().iter().map(|one| one.passed + one.denied).max();
    let most = runs.iter().filter_map(highest).max().unwrap_or(0) as f64;
    let left = runs.iter().map(|run| flow(run, &time, most)).collect();
    let highest = |run: &Run| run.followed.iter().map(|(_, units)| *units).max();
    let limits = runs.iter().filter_map(|run| run.policy.quota().count());
    let most = runs.iter().filter_map(highest).chain(limits).max().unwrap_or(0) as f64;
    let right = runs.iter().map(|run| within_window(run, &time, most)).collect();
    let mut svg = head(title, (2.0 * HALF, size.1));
    for (id, panels, x) in [("left-", left, 0.0), ("right-", right, HALF)] {
        svg += &format!("<g transform=\"translate({x} 12)\">\n");
        time.plot(id, (size.0, size.1 - 12.0), panels).body(&mut svg);
        svg += "</g>\n";
    }
    svg += "</svg>\n";
    svg
}

/// One series as a picture.
#[must_use]
pub fn over_time(title: &str, series: &Series) -> String {
    let parts = series.counts().len().max(1) as u64;
    let time = Time::of(Duration::from_nanos(series.part().saturating_mul(parts)));
    let most = series.counts().iter().map(|one| one.passed + one.denied).max().unwrap_or(0);
    let panel = Panel {
        label: format!("per {}", text::time(Duration::from_nanos(series.part()))).into(),
        marks: marks(most as f64),
        bars: vec![time.bars(series)],
        lines: vec![name("passed", BLUE), name("denied", RED)],
        ..Panel::default()
    };
    let title = title.to_owned().into();
    Plot { title, ..time.plot("", (2.0 * HALF, 280.0), vec![panel]) }.draw()
}

fn flow(run: &Run, time: &Time, most: f64) -> Panel {
    let policy = &run.policy;
    let mut heading = format!("{}, {}", policy.algorithm(), policy.quota());
    if let Some(places) = policy.queue() {
        heading += &format!(", queue {places}");
    }
    Panel {
        heading: heading.into(),
        label: format!("per {}", text::time(Duration::from_nanos(run.series.part()))).into(),
        marks: marks(most),
        bars: vec![time.bars(&run.series)],
        lines: vec![name("passed", BLUE), name("denied", RED)],
        ..Panel::default()
    }
}

fn within_window(run: &Run, time: &Time, most: f64) -> Panel {
    let window = text::time(run.window);
    let at_once = run.policy.quota().is_concurrent();
    let worst = run.worst.units;
    let mut heading = if at_once {
        format!("at most {worst} at once")
    } else {
        format!("at most {worst} in {window}")
    };
    let mut lines = Vec::new();
    if let Some(limit) = run.policy.quota().count() {
        if worst > limit
            && let Some(excess) = run.excess()
        {
            heading += &format!(", {excess:.2} times the limit");
        }
        let level = limit as f64;
        let points = vec![(0.0, level), (time.length, level)];
        lines.push(Line { name: "limit".into(), color: GREY, points, steps: true });
    }
    let mut points: Points =
        run.followed.iter().map(|(at, units)| (time.at(*at), *units as f64)).collect();
    points.extend(points.last().map(|(_, last)| (time.length, *last)));
    let color =
        if run.policy.quota().count().is_some_and(|limit| worst > limit) { RED } else { BLUE };
    lines.push(Line { name: "".into(), color, points, steps: true });
    Panel {
        heading: heading.into(),
        label: if at_once { "at once".into() } else { format!("in {window}").into() },
        marks: marks(most),
        lines,
        ..Panel::default()
    }
}

/// Only its name is seen.
fn name(name: &'static str, color: &'static str) -> Line {
    Line { name: name.into(), color, points: Vec::new(), steps: true }
}

/// How time is told.
struct Time {
    unit: &'static str,
    nanos: f64,
    length: f64,
}

impl Time {
    fn of(length: Duration) -> Self {
        let (unit, seconds) = match length.as_secs() {
            0..300 => ("seconds", 1.0),
            300..18_000 => ("minutes", 60.0),
            18_000..432_000 => ("hours", 3600.0),
            _ => ("days", 86_400.0),
        };
        Self { unit, nanos: seconds * 1e9, length: (length.as_secs_f64() / seconds).max(1e-9) }
    }

    fn at(&self, nanos: u64) -> f64 {
        nanos as f64 / self.nanos
    }

    fn bars(&self, series: &Series) -> Bars {
        let passed = series.counts().iter().map(|one| one.passed as f64).collect();
        let denied = series.counts().iter().map(|one| one.denied as f64).collect();
        Bars {
            every: self.at(series.part()),
            heights: vec![passed, denied],
            colors: vec![BLUE, RED],
        }
    }

    fn plot(&self, id: &'static str, size: (f64, f64), panels: Vec<Panel>) -> Plot {
        let every = round_step(self.length, 6.0);
        Plot { unit: self.unit, size, id, seconds: self.length, every, panels, ..Plot::default() }
    }
}
