//! Lines and bars over time, as text that any browser shows. No styles, so that a page may forbid them; classes, so that it
//! may choose other colours.

use std::borrow::Cow;
use std::fmt::Write;

use crate::text::escaped;

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
    pub name: Cow<'static, str>,
    /// One of those above, or another.
    pub color: &'static str,
    /// Where it goes.
    pub points: Points,
    /// Whether a value stays until the next point.
    pub steps: bool,
}

/// Bars, one for each part of the time, one kind on top of the other.
#[derive(Clone, Debug)]
pub struct Bars {
    /// How much time each stands for.
    pub every: f64,
    /// How high they are: of each kind, from below.
    pub heights: Vec<Vec<f64>>,
    /// The colours of the kinds.
    pub colors: Vec<&'static str>,
}

/// One of several drawings, one above the other, by the same time.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Stands above it, on the left.
    pub heading: Cow<'static, str>,
    /// What is counted.
    pub label: Cow<'static, str>,
    /// Where the axis has numbers; it ends with the last.
    pub marks: Vec<f64>,
    /// From one value to another, from one second to another.
    pub bands: Vec<((f64, f64), (f64, f64))>,
    /// What stands on the axis.
    pub bars: Vec<Bars>,
    /// What is drawn.
    pub lines: Vec<Line>,
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Stands above all.
    pub title: Cow<'static, str>,
    /// What time is told in.
    pub unit: &'static str,
    /// How wide and high it is.
    pub size: (f64, f64),
    /// Tells its parts from those of others on the same page.
    pub id: &'static str,
    /// How much time it shows.
    pub seconds: f64,
    /// From one mark on the axis of time to the next.
    pub every: f64,
    /// When something happens that is shaded, and what.
    pub incident: Option<(f64, f64, &'static str)>,
    /// Drawings, from above.
    pub panels: Vec<Panel>,
}

impl Default for Plot {
    fn default() -> Self {
        Self {
            title: "".into(),
            unit: "seconds",
            size: (640.0, 320.0),
            id: "",
            seconds: 60.0,
            every: 10.0,
            incident: None,
            panels: Vec::new(),
        }
    }
}

impl Plot {
    /// The picture, as SVG.
    #[must_use]
    pub fn draw(&self) -> String {
        let mut svg = head(&self.title, self.size);
        self.body(&mut svg);
        svg += "</svg>\n";
        svg
    }

    /// What is in the picture.
    pub(crate) fn body(&self, svg: &mut String) {
        let (_, total) = self.size;
        let many = self.panels.len() as f64;
        let gap = if self.panels.iter().any(|panel| !panel.heading.is_empty()) {
            GAP + 12.0
        } else {
            GAP
        };
        let height = (total - TOP - BOTTOM - gap * (many - 1.0)) / many;
        for (number, panel) in self.panels.iter().enumerate() {
            let top = TOP + number as f64 * (height + gap);
            self.panel(svg, panel, self.frame(top, height));
        }
        self.time(svg);
    }

    const fn frame(&self, top: f64, height: f64) -> Frame {
        Frame { top, height, seconds: self.seconds, width: self.size.0 }
    }

    fn panel(&self, svg: &mut String, panel: &Panel, frame: Frame) {
        let most = panel.marks.last().copied().unwrap_or(1.0);
        let y = |value: f64| frame.y(value / most);
        // What is above the end of the axis is not seen.
        let (clip, width) =
            (format!("{}from{:.0}", self.id, frame.top), frame.width - LEFT - RIGHT);
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
        for mark in &panel.marks {
            let (y, end) = (y(*mark), frame.width - RIGHT);
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{end}\" class=\"grid\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{mark}</text>",
                LEFT - 5.0,
                y + 4.0
            );
        }
        for bars in &panel.bars {
            bars.draw(svg, &frame, most, &clip);
        }
        let middle = frame.top + frame.height / 2.0;
        let _ = writeln!(
            svg,
            "<text transform=\"translate(14 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escaped(&panel.label)
        );
        if !panel.heading.is_empty() {
            let y = frame.top - 6.0;
            let _ =
                writeln!(svg, "<text x=\"{LEFT}\" y=\"{y:.1}\">{}</text>", escaped(&panel.heading));
        }
        for line in panel.lines.iter().filter(|line| !line.points.is_empty()) {
            let _ = writeln!(
                svg,
                "<path d=\"{}\" clip-path=\"url(#{clip})\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>",
                path(line, &frame, most),
                line.color
            );
        }
        // Their names, one beside the other, from the right.
        let mut x = frame.width - RIGHT;
        for line in panel.lines.iter().rev().filter(|line| !line.name.is_empty()) {
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{}\">{}</text>",
                frame.top - 4.0,
                line.color,
                escaped(&line.name)
            );
            x -= 6.2 * line.name.len() as f64 + 12.0;
        }
    }

    fn time(&self, svg: &mut String) {
        let (_, total) = self.size;
        let frame = self.frame(TOP, total - TOP - BOTTOM);
        let bottom = frame.y(0.0);
        let mut second = 0.0;
        while second <= self.seconds && self.every > 0.0 {
            let (x, y) = (frame.x(second), bottom + 15.0);
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{second}</text>"
            );
            second += self.every;
        }
        let (x, y) = (frame.x(self.seconds / 2.0), total - 8.0);
        let unit = self.unit;
        let _ =
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{unit}</text>");
    }
}

/// Begins a picture.
pub(crate) fn head(title: &str, (width, height): (f64, f64)) -> String {
    let title = escaped(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#222\">\n\
         <title>{title}</title>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"13\">{title}</text>\n"
    )
}

impl Bars {
    fn draw(&self, svg: &mut String, frame: &Frame, most: f64, clip: &str) {
        let many = self.heights.iter().map(Vec::len).max().unwrap_or(0);
        let mut below = vec![0.0; many];
        for (heights, color) in self.heights.iter().zip(&self.colors) {
            let mut path = String::new();
            for (place, (height, below)) in heights.iter().zip(&mut below).enumerate() {
                if *height > 0.0 {
                    let left = frame.x(place as f64 * self.every);
                    let right = frame.x((place + 1) as f64 * self.every);
                    let (low, high) = (frame.y(*below / most), frame.y((*below + height) / most));
                    let _ = write!(path, "M{left:.1} {low:.1}V{high:.1}H{right:.1}V{low:.1}");
                }
                *below += height;
            }
            let _ =
                writeln!(svg, "<path d=\"{path}\" clip-path=\"url(#{clip})\" fill=\"{color}\"/>");
        }
    }
}

/// Numbers for an axis from 0 to at least so much: round ones, three or four.
#[must_use]
pub fn marks(most: f64) -> Vec<f64> {
    let step = round_step(most.max(1.0), 3.0);
    let mut marks = vec![0.0];
    let mut mark = 0.0;
    while mark < most.max(1.0) {
        mark += step;
        marks.push(mark);
    }
    marks
}

/// 1, 2 or 5 times a power of ten, so that about so many of them make the whole.
pub(crate) fn round_step(whole: f64, many: f64) -> f64 {
    let least = whole / many;
    let ten = 10_f64.powf(least.log10().floor());
    let step =
        [1.0, 2.0, 5.0].map(|part| part * ten).into_iter().find(|step| *step >= least * 0.75);
    step.unwrap_or(10.0 * ten)
}

struct Frame {
    width: f64,
    top: f64,
    height: f64,
    seconds: f64,
}

impl Frame {
    fn x(&self, second: f64) -> f64 {
        LEFT + (self.width - LEFT - RIGHT) * second / self.seconds
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
