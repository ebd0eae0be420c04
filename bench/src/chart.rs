//! Figures as bars, in SVG that needs no styles, so that it is shown wherever pictures are.

use std::fmt::Write as _;

use dashpot_simulate::plot::{BLUE, RED};

const LEFT: f64 = 270.0;
const LONGEST: f64 = 380.0;
const HEIGHT: f64 = 26.0;
const OTHERS: &str = "#8a8f98";

/// A bar for each name; what is not a number was not measured.
pub(crate) fn draw(title: &str, unit: &str, bars: &[(String, f64)]) -> String {
    let most =
        bars.iter().map(|(_, figure)| *figure).filter(|it| it.is_finite()).fold(0.0, f64::max);
    let height = HEIGHT.mul_add(bars.len() as f64, 48.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"{height}\" viewBox=\"0 0 760 {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" role=\"img\"><title>{title}</title>\
         <rect width=\"760\" height=\"{height}\" fill=\"#ffffff\"/>\
         <text x=\"10\" y=\"22\" font-size=\"15\" fill=\"#222222\">{title}</text>\
         <text x=\"750\" y=\"22\" text-anchor=\"end\" fill=\"#555555\">{unit}</text>\n"
    );
    for (index, (name, figure)) in bars.iter().enumerate() {
        let top = HEIGHT.mul_add(index as f64, 38.0);
        let middle = top + 14.0;
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\" fill=\"#222222\">{name}</text>",
            LEFT - 8.0
        );
        if !figure.is_finite() {
            let _ = writeln!(
                svg,
                "<text x=\"{LEFT}\" y=\"{middle}\" fill=\"{RED}\">not measured</text>"
            );
            continue;
        }
        let length = (figure / most * LONGEST).max(1.0);
        let color = if name.starts_with("dashpot") { BLUE } else { OTHERS };
        let told = if *figure < 100.0 {
            crate::table::number(*figure)
        } else {
            crate::table::count(*figure)
        };

        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{length:.1}\" height=\"18\" fill=\"{color}\"/>\
             <text x=\"{:.1}\" y=\"{middle}\" fill=\"#222222\">{told}</text>",
            LEFT + length + 6.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}
