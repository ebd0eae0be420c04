//! What is remembered outlives the process, whatever happens to it or to the file.

#[path = "state/any_window.rs"]
mod any_window;
#[path = "state/children.rs"]
mod children;
#[path = "state/damage.rs"]
mod damage;
#[path = "state/round_trip.rs"]
mod round_trip;
#[path = "state/scratch.rs"]
mod scratch;
