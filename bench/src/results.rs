//! What a run comes to: its tables, the goals and how far they are met, every sample, and charts. Told on stdout, and written to
//! a file if `scripts/bench` asks for one.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use crate::chart;
use crate::machine;
use crate::table::{Table, number};

static RESULTS: Mutex<Results> = Mutex::new(Results {
    tables: String::new(),
    goals: Vec::new(),
    samples: Vec::new(),
    charts: Vec::new(),
    rates: Vec::new(),
});

struct Results {
    tables: String,
    goals: Vec<Goal>,
    samples: Vec<(String, Vec<f64>)>,
    charts: Vec<Chart>,
    rates: Vec<(&'static str, f64)>,
}

struct Chart {
    /// Of its file, without the ending.
    name: &'static str,
    title: &'static str,
    svg: String,
}

/// What is wanted of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

struct Goal {
    id: &'static str,
    work: String,
    wanted: Wanted,
    measured: f64,
    /// What the figure is: a ratio to whom, or a unit.
    unit: &'static str,
}

impl Goal {
    fn is_met(&self) -> bool {
        match self.wanted {
            Wanted::AtLeast(least) => self.measured >= least,
            Wanted::AtMost(most) => self.measured <= most,
        }
    }

    fn cells(&self) -> [String; 5] {
        let wanted = match self.wanted {
            Wanted::AtLeast(least) => format!("≥ {}", number(least)),
            Wanted::AtMost(most) => format!("≤ {}", number(most)),
        };
        let met = match self.measured {
            measured if measured.is_nan() => "not measured",
            _ if self.is_met() => "yes",
            _ => "**no**",
        };
        let unit = |figure: &str| format!("{figure} {}", self.unit);
        let measured = unit(&number(self.measured));
        [self.id.to_owned(), self.work.clone(), unit(&wanted), measured, met.to_owned()]
    }
}

fn with<T>(change: impl FnOnce(&mut Results) -> T) -> T {
    change(&mut RESULTS.lock().expect("nobody panics with the results"))
}

/// A part of the report.
pub(crate) fn say(text: &str) {
    print!("{text}");
    with(|results| results.tables.push_str(text));
}

/// Every figure of one kind, in the order in which they were taken.
pub(crate) fn samples(of: String, figures: Vec<f64>) {
    with(|results| results.samples.push((of, figures)));
}

/// How much somebody answered in a second, to be told beside what was admitted too much.
pub(crate) fn rate(who: &'static str, rate: f64) {
    with(|results| results.rates.push((who, rate)));
}

/// What was noted of somebody; if that part did not run, it is not a number.
pub(crate) fn rate_of(who: &str) -> f64 {
    let known = with(|results| results.rates.iter().find(|(name, _)| *name == who).copied());
    known.map_or(f64::NAN, |(_, rate)| rate)
}

/// A goal of the project's, by its id, and where it stands; `also` is one that has none.
pub(crate) fn goal(
    id: &'static str,
    work: impl Into<String>,
    wanted: Wanted,
    measured: f64,
    unit: &'static str,
) {
    let goal = Goal { id, work: work.into(), wanted, measured, unit };
    with(|results| results.goals.push(goal));
}

/// A picture of some figures, ours among them.
pub(crate) fn chart(
    name: &'static str,
    title: &'static str,
    unit: &str,
    bars: impl IntoIterator<Item = (String, f64)>,
) {
    let bars: Vec<_> = bars.into_iter().collect();
    let svg = chart::draw(title, unit, &bars);
    with(|results| results.charts.push(Chart { name, title, svg }));
}

/// Tells where the goals stand.
pub(crate) fn print_goals() {
    let text = with(|results| goals(&results.goals));
    print!("{text}");
}

fn goals(goals: &[Goal]) -> String {
    let mut goals: Vec<&Goal> = goals.iter().collect();
    goals.sort_by_key(|goal| goal.id.strip_prefix('P').and_then(|id| id.parse::<u32>().ok()));
    let mut table = Table::new(["goal", "work", "wanted", "measured", "met"]);
    for goal in &goals {
        table.row(goal.cells());
    }
    let missed = goals.iter().filter(|goal| !goal.is_met()).count();
    let note = format!(
        "{missed} of {} are missed. Each is a figure of this run, beside a peer where one is named.",
        goals.len()
    );
    let mut text = table.text("Goals", &note);
    text.push_str("## Where it loses\n\n");
    let mut lost = false;
    for goal in goals.iter().filter(|goal| !goal.is_met()) {
        let [id, work, wanted, measured, _] = goal.cells();
        let _ = writeln!(text, "- {id}, {work}: {measured}, wanted {wanted}");
        lost = true;
    }
    text.push_str(if lost { "\n" } else { "Nowhere, in this run.\n\n" });
    text
}

/// Writes everything to a file, and the charts beside it.
pub(crate) fn write(path: &Path) {
    let text = with(|results| {
        let charts = path.with_file_name("charts");
        fs::create_dir_all(&charts).expect("a directory for charts");
        let mut text = machine::header();
        text.push_str("Written by `scripts/bench`, and by nobody else. How it is measured: [README.md](README.md).\n\n");
        text.push_str(&goals(&results.goals));
        if !results.charts.is_empty() {
            text.push_str("## Pictures\n\n");
        }
        for chart in &results.charts {
            fs::write(charts.join(format!("{}.svg", chart.name)), &chart.svg).expect("a chart");
            let _ = writeln!(text, "![{}](charts/{}.svg)\n", chart.title, chart.name);
        }
        text.push_str(&results.tables);
        text.push_str("## Samples\n\nEvery figure of which a median was taken, in the order of the rounds.\n\n```text\n");
        for (of, figures) in &results.samples {
            let figures: Vec<String> = figures.iter().map(|&figure| number(figure)).collect();
            let _ = writeln!(text, "{of}: {}", figures.join(" "));
        }
        text.push_str("```\n");
        text
    });
    fs::write(path, text).expect("a file for the results");
}
