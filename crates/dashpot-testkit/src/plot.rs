//! Lines over time, as text that any browser shows: pictures of the documentation, drawn by the tests that are about them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 40.0;
/// Between two panels.
const GAP: f64 = 22.0;

/// A colour of a line.
pub const BLUE: &str = "#1f5fa8";
/// A colour of a line.
pub const RED: &str = "#b3362b";
/// A colour of a line.
pub const GREEN: &str = "#2b7a3d";

/// Points are seconds and a value.
pub type Points = Vec<(f64, f64)>;

/// What is drawn.
#[derive(Clone, Debug)]
pub struct Line {
    /// Stands above it.
    pub name: &'static str,
    /// One of those above, or another.
    pub color: &'static str,
    /// Where it goes.
    pub points: Points,
    /// Whether a value stays until the next point.
    pub steps: bool,
}

/// One of several drawings, one above the other, by the same time.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What is counted.
    pub label: &'static str,
    /// Where the axis has numbers; it ends with the last.
    pub marks: &'static [f64],
    /// From one value to another, from one second to another.
    pub bands: Vec<((f64, f64), (f64, f64))>,
    /// What is drawn.
    pub lines: Vec<Line>,
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Stands above all.
    pub title: &'static str,
    /// How much time it shows.
    pub seconds: f64,
    /// From one mark on the axis of time to the next.
    pub every: f64,
    /// When something happens that is shaded, and what.
    pub incident: Option<(f64, f64, &'static str)>,
    /// Drawings, from above.
    pub panels: Vec<Panel>,
}

impl Plot {
    /// Sees that a file below `docs/` is this picture. `UPDATE_PLOTS=1` draws it anew.
    pub fn is_drawn_in(&self, file: &str) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
        let drawn = self.draw();
        if std::env::var("UPDATE_PLOTS").is_ok_and(|update| update == "1") {
            fs::create_dir_all(file.parent().expect("it is in a folder")).unwrap();
            fs::write(&file, &drawn).unwrap();
        }
        let held = fs::read_to_string(&file).unwrap_or_default();
        assert!(held == drawn, "{} is not what is drawn: UPDATE_PLOTS=1 draws it", file.display());
    }

    /// The picture, as SVG.
    pub fn draw(&self) -> String {
        let mut svg = String::new();
        let head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#222\">\n\
             <title>{0}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"18\" font-size=\"13\">{0}</text>\n",
            self.title
        );
        svg += &head;
        let many = self.panels.len() as f64;
        let height = (HEIGHT - TOP - BOTTOM - GAP * (many - 1.0)) / many;
        for (number, panel) in self.panels.iter().enumerate() {
            let top = TOP + number as f64 * (height + GAP);
            self.panel(&mut svg, panel, Frame { top, height, seconds: self.seconds });
        }
        self.time(&mut svg);
        svg += "</svg>\n";
        svg
    }

    fn panel(&self, svg: &mut String, panel: &Panel, frame: Frame) {
        let most = *panel.marks.last().expect("an axis has an end");
        let y = |value: f64| frame.y(value / most);
        // What is above the end of the axis is not seen.
        let (clip, width) = (format!("from{:.0}", frame.top), WIDTH - LEFT - RIGHT);
        let _ = writeln!(
            svg,
            "<clipPath id=\"{clip}\"><rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/></clipPath>",
            frame.top - 1.0,
            frame.height + 2.0
        );
        if let Some((from, to, what)) = self.incident {
            rect(svg, (frame.x(from), frame.x(to)), (y(most), y(0.0)), "#f3e3d3");
            if frame.top == TOP {
                let (x, y) = (frame.x(to) - 4.0, frame.top + 12.0);
                let _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\" fill=\"#7a4a1a\">{what}</text>"
                );
            }
        }
        for ((low, high), (from, to)) in &panel.bands {
            rect(svg, (frame.x(*from), frame.x(*to)), (y(*high), y(*low)), "#cfe3cf");
        }
        for mark in panel.marks {
            let (y, end) = (y(*mark), WIDTH - RIGHT);
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{end}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{mark}</text>",
                LEFT - 5.0,
                y + 4.0
            );
        }
        let middle = frame.top + frame.height / 2.0;
        let _ = writeln!(
            svg,
            "<text transform=\"translate(14 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            panel.label
        );
        for line in &panel.lines {
            let _ = writeln!(
                svg,
                "<path d=\"{}\" clip-path=\"url(#{clip})\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>",
                path(line, &frame, most),
                line.color
            );
        }
        // Their names, one beside the other, from the right.
        let mut x = WIDTH - RIGHT;
        for line in panel.lines.iter().rev() {
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{}\">{}</text>",
                frame.top - 4.0,
                line.color,
                line.name
            );
            x -= 6.2 * line.name.len() as f64 + 12.0;
        }
    }

    fn time(&self, svg: &mut String) {
        let frame = Frame { top: TOP, height: HEIGHT - TOP - BOTTOM, seconds: self.seconds };
        let bottom = frame.y(0.0);
        let mut second = 0.0;
        while second <= self.seconds {
            let (x, y) = (frame.x(second), bottom + 15.0);
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{second}</text>"
            );
            second += self.every;
        }
        let (x, y) = (frame.x(self.seconds / 2.0), HEIGHT - 8.0);
        let _ =
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">seconds</text>");
    }
}

struct Frame {
    top: f64,
    height: f64,
    seconds: f64,
}

impl Frame {
    fn x(&self, second: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * second / self.seconds
    }

    fn y(&self, part: f64) -> f64 {
        self.top + self.height * (1.0 - part)
    }
}

fn rect(svg: &mut String, (left, right): (f64, f64), (top, bottom): (f64, f64), color: &str) {
    let (width, height) = (right - left, bottom - top);
    let _ = writeln!(
        svg,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{color}\"/>"
    );
}

fn path(line: &Line, frame: &Frame, most: f64) -> String {
    let mut path = String::new();
    for (second, value) in &line.points {
        let (x, y) = (frame.x(*second), frame.y(value / most));
        let _ = match (path.is_empty(), line.steps) {
            (true, _) => write!(path, "M{x:.1} {y:.1}"),
            (false, true) => write!(path, "H{x:.1}V{y:.1}"),
            (false, false) => write!(path, "L{x:.1} {y:.1}"),
        };
    }
    path
}
