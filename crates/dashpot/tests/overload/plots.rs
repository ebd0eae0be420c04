//! What `docs/overload.md` shows is what the models do. `UPDATE_PLOTS=1` draws it anew.

use dashpot_testkit::plot::{BLUE, GREEN, Line, Panel, Plot, Points, RED, is_drawn_in};

use crate::capacity::{BAND, CAPACITY, LATENCY, door, overload};
use crate::door::Door;
use crate::factor::service;
use crate::service::Second;
use crate::{MILLI, SECOND};

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / SECOND as f64
}

fn limits(name: &'static str, color: &'static str, door: &Door) -> Line {
    let limits = door.limits.iter().map(|(at, limit)| (seconds(*at), *limit as f64));
    let end = (seconds(door.now), door.limit() as f64);
    Line { name: name.into(), color, points: limits.chain([end]).collect(), steps: true }
}

fn level(name: &'static str, value: f64, time: f64) -> Line {
    Line {
        name: name.into(),
        color: "#777",
        points: vec![(0.0, value), (time, value)],
        steps: true,
    }
}

#[test]
fn converges() {
    const TIME: u64 = 30;
    let [mut below, mut above] = [1, 10 * BAND.1].map(|limit| door(limit, overload(3.0)));
    below.run(TIME);
    above.run(TIME);
    let time = seconds(TIME * SECOND);
    let panel = |label: &'static str, marks: &[f64]| Panel {
        label: label.into(),
        marks: marks.to_vec(),
        bands: vec![((BAND.0 as f64, BAND.1 as f64), (0.0, time))],
        lines: vec![limits("from above", RED, &above), limits("from below", BLUE, &below)],
        ..Panel::default()
    };
    let panels = vec![
        panel("limit", &[0.0, 150.0, 300.0, 450.0]),
        panel("limit, closer", &[0.0, 20.0, 40.0, 60.0]),
    ];
    let title = "A limit finds what the server can do".into();
    let plot = Plot { title, seconds: time, every: 5.0, panels, ..Plot::default() };
    is_drawn_in(&plot.draw(), "overload/converges.svg");
}

/// For each second, something about those who were answered in it: how many there were, and how long the longest took.
fn answers(door: &Door, value: fn(usize, u64) -> f64) -> Points {
    let point = |second: u64| {
        let in_it = door.answers.iter().filter(|one| one.at / SECOND == second);
        let longest = in_it.clone().map(|one| one.took).max().unwrap_or(0);
        (second as f64, value(in_it.count(), longest))
    };
    let points = (0..door.now / SECOND).map(point);
    with_end(points.collect())
}

/// The last second lasts, too.
fn with_end(mut points: Points) -> Points {
    points.extend(points.last().map(|(second, value)| (second + 1.0, *value)));
    points
}

#[test]
fn incident() {
    let (from, to, time) = (20, 50, 80);
    let mut door = door(BAND.0, overload(3.0));
    door.run(from);
    door.server.be_slower(5.0);
    door.run(to - from);
    door.server.be_slower(1.0);
    door.run(time - to);
    let [from, to, time] = [from, to, time].map(|second| seconds(second * SECOND));
    let line =
        |name: &'static str, color, points| Line { name: name.into(), color, points, steps: true };
    let band = (BAND.0 as f64, BAND.1 as f64);
    let limit = Panel {
        label: "limit".into(),
        marks: vec![0.0, 25.0, 50.0],
        bands: vec![(band, (0.0, from)), ((8.0, 9.0), (from, to)), (band, (to, time))],
        lines: vec![limits("limit", BLUE, &door)],
        ..Panel::default()
    };
    let latency = (LATENCY / MILLI) as f64;
    let longest = answers(&door, |_, longest| longest as f64 / MILLI as f64);
    let latency = Panel {
        label: "ms".into(),
        marks: vec![0.0, 500.0, 1000.0],
        lines: vec![level("250 ms", latency, time), line("longest until the answer", RED, longest)],
        ..Panel::default()
    };
    let answered = answers(&door, |many, _| many as f64);
    let best = vec![(0.0, CAPACITY), (from, CAPACITY / 5.0), (to, CAPACITY), (time, CAPACITY)];
    let best = Line { name: "at best".into(), color: "#777", points: best, steps: true };
    let goodput = Panel {
        label: "per second".into(),
        marks: vec![0.0, 100.0, 200.0],
        lines: vec![best, line("answered", GREEN, answered)],
        ..Panel::default()
    };
    let plot = Plot {
        title: "Everything takes five times as long for half a minute".into(),
        seconds: time,
        every: 10.0,
        incident: Some((from, to, "five times slower")),
        panels: vec![limit, latency, goodput],
        ..Plot::default()
    };
    is_drawn_in(&plot.draw(), "overload/incident.svg");
}

#[test]
fn factor() {
    let (from, to, time) = (20, 60, 100);
    let mut service = service(80);
    service.run(from);
    service.server.be_slower(3.0);
    service.run(to - from);
    service.server.be_slower(1.0);
    service.run(time - to);
    let [from, to, time] = [from, to, time].map(|second| seconds(second * SECOND));
    let line = |name: &'static str, color, value: fn(&Second) -> f64| {
        let points = service.seconds.iter().enumerate();
        let points = points.map(|(at, second)| (at as f64, value(second)));
        Line { name: name.into(), color, points: with_end(points.collect()), steps: true }
    };
    let percent = Panel {
        label: "%".into(),
        marks: vec![0.0, 50.0, 80.0, 100.0],
        bands: vec![((50.0, 80.0), (0.0, time))],
        lines: vec![
            line("CPU", RED, |second| 100.0 * second.cpu),
            line("factor", BLUE, |second| f64::from(second.percent)),
        ],
        ..Panel::default()
    };
    let admitted = Panel {
        label: "per second".into(),
        marks: vec![0.0, 40.0, 80.0, 120.0],
        lines: vec![
            level("the limit", 80.0, time),
            line("admitted", GREEN, |second| second.admitted as f64),
        ],
        ..Panel::default()
    };
    let plot = Plot {
        title: "A limit that shrinks while the service suffers".into(),
        seconds: time,
        every: 10.0,
        incident: Some((from, to, "three times slower")),
        panels: vec![percent, admitted],
        ..Plot::default()
    };
    is_drawn_in(&plot.draw(), "overload/factor.svg");
}

/// The numbers of a table's rows, without what stands beside them and what the columns are.
fn numbers(page: &str, after: &str) -> Vec<Vec<f64>> {
    let table = page.split(after).nth(1).expect("a heading").lines();
    let rows =
        table.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let number = |cell: &str| cell.trim_end_matches([' ', '%', 'm', 's', '|']).trim().parse().ok();
    // The first cell says what it is about, and may have numbers in it.
    rows.skip(2).map(|row| row.split(" | ").skip(1).filter_map(number).collect()).collect()
}

/// The table of the page is what the bench has printed, in whole percents.
#[test]
fn the_page_shows_what_was_measured() {
    let page = include_str!("../../../../docs/overload.md");
    let shown = numbers(page, "## What it does to a service");
    let printed = numbers(include_str!("../../../../bench/overload.md"), "## Three times too much");
    assert_eq!((shown.len(), printed.len()), (3, 3));
    for (shown, printed) in shown.iter().zip(&printed) {
        // What it can answer at all is not shown.
        let (times, parts) = printed[1..7].split_at(3);
        let rounded = parts.iter().map(|part| part.round());
        let expected: Vec<f64> = times.iter().copied().chain(rounded).collect();
        assert_eq!(*shown, expected);
    }
    let refused = printed[2].last().expect("a time");
    assert!(page.contains(&format!("hear it after {refused} ms at most (p99)")), "{refused}");
}
