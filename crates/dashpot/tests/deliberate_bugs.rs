//! Breaks the shipped code on purpose, and sees the test named for each bug fail.
//!
//! Each bug is one edit to a copy of the workspace. If the code it edits is rewritten, the edit must
//! be too: an edit that finds nothing to change is a failure of its own.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

struct Bug {
    /// Below `crates/dashpot/src/`.
    file: &'static str,
    right: &'static str,
    wrong: &'static str,
    /// The test that must fail: its file below `crates/dashpot/tests/`, and its name.
    caught_by: (&'static str, &'static str),
}

#[test]
fn clamp_to_now_minus_tau() {
    caught(&Bug {
        file: "algorithm/token_bucket.rs",
        right: "Ok(now.as_nanos() + (backlog + wanted))",
        wrong: "Ok(tat.max(now.as_nanos().saturating_sub(self.depth)) + wanted)",
        caught_by: ("traps", "trap_idle_credit_on_top_of_the_burst"),
    });
}

#[test]
fn truncated_wait() {
    caught(&Bug {
        file: "algorithm/token_bucket.rs",
        right: "grains.saturating_add(u128::from(self.per_nano - 1))",
        wrong: "grains",
        caught_by: ("traps", "trap_truncated_wait"),
    });
}

#[test]
fn pages_that_are_half_empty_together() {
    caught(&Bug {
        file: "memory/page.rs",
        right: "lines <= 4 || lines.is_power_of_two() == (mark >> 63 == 0)",
        wrong: "lines.is_power_of_two() && mark <= u64::MAX",
        caught_by: ("bounded", "pages::a_key_takes_as_much_in_small_crowds_and_large"),
    });
}

#[test]
fn burst_off_by_one() {
    caught(&Bug {
        file: "algorithm/token_bucket.rs",
        right: "let depth = grains(capacity, per_unit);",
        wrong: "let depth = grains(capacity.saturating_add(1), per_unit);",
        caught_by: ("traps", "trap_burst_off_by_one"),
    });
}

#[test]
fn units_given_back_at_another_price() {
    caught(&Bug {
        file: "memory/kept.rs",
        right: "policy.is_any_window() || kept.is_other_part(taken)",
        wrong: "policy.is_any_window()",
        caught_by: ("properties", "a_token_bucket_equals_the_oracle"),
    });
}

#[test]
fn undone_units_on_top_of_what_came_back() {
    caught(&Bug {
        file: "algorithm/token_bucket.rs",
        right: "match self.worth(units).saturating_sub(drained) {",
        wrong: "match self.worth(units).max(drained / u128::MAX) {",
        caught_by: ("properties", "undoing_puts_too_much_into_no_interval"),
    });
}

#[test]
fn check_then_update() {
    caught(&Bug {
        file: "memory/group.rs",
        right: "        let is_locked = try_lock(self.lock, self.sequence);",
        wrong: "        std::thread::yield_now();
        let is_locked = try_lock(self.lock, self.lock.load(Ordering::Relaxed) & !LOCKED);",
        caught_by: ("stress", "trap_check_then_update"),
    });
}

#[test]
fn lock_let_go_by_those_who_never_had_it() {
    caught(&Bug {
        file: "memory/group.rs",
        right: "try_lock(self.lock, sequence).then(|| LockedGroup { group: self, sequence })",
        wrong: "try_lock(self.lock, sequence).then_some(LockedGroup { group: self, sequence })",
        caught_by: ("bounded", "threads::no_key_has_more_permits_than_it_may"),
    });
}

#[test]
fn denied_requests_charged() {
    caught(&Bug {
        file: "memory/held.rs",
        right: "        if allowed && !wanting {",
        wrong: "        if !wanting {",
        caught_by: ("stress", "several_limits_at_once_from_all_sides"),
    });
}

#[test]
fn window_rollover_that_stores_instead_of_adds() {
    caught(&Bug {
        file: "algorithm/fixed_window.rs",
        right: "state.count = count.saturating_add(units);",
        wrong: "state.count = units;\n        let _ = count;",
        caught_by: ("traps", "trap_window_rollover_that_stores_instead_of_adds"),
    });
}

#[test]
fn window_that_follows_the_clock_back() {
    caught(&Bug {
        file: "algorithm/fixed_window.rs",
        right: "self.grid.window_at(now.max(state.start))",
        wrong: "self.grid.window_at(now)",
        caught_by: ("properties", "a_fixed_window_equals_the_oracle"),
    });
}

#[test]
fn entry_that_lives_a_nanosecond_too_long() {
    caught(&Bug {
        file: "algorithm/sliding_log.rs",
        right: "entry.at().saturating_add(self.window) <= now",
        wrong: "entry.at().saturating_add(self.window) < now",
        caught_by: ("properties", "a_sliding_log_equals_the_oracle"),
    });
}

#[test]
fn estimate_rounded_in_the_callers_favour() {
    caught(&Bug {
        file: "algorithm/sliding_window.rs",
        right: "self.window - u64::try_from(left).unwrap_or(self.window)",
        wrong: "(self.window - u64::try_from(left).unwrap_or(self.window)).saturating_sub(1)",
        caught_by: ("properties", "a_sliding_window_equals_the_oracle"),
    });
}

#[test]
fn delay_counted_after_charging() {
    caught(&Bug {
        file: "algorithm/leaky_bucket.rs",
        right: "delay: self.meter.drained_to(tat, now, undelayed)",
        wrong: "delay: self.meter.drained_to(tat, now, undelayed.saturating_sub(cost))",
        caught_by: ("properties", "a_leaky_bucket_equals_the_oracle"),
    });
}

#[test]
fn eviction_of_keys_that_are_owed_a_limit() {
    caught(&Bug {
        file: "memory/table.rs",
        right: "engine.is_idle(&engine.unpack(self.state_words(&copied.words)), now)",
        wrong: "let now = now.after(std::time::Duration::from_secs(30));
            engine.is_idle(&engine.unpack(self.state_words(&copied.words)), now)",
        caught_by: ("traps", "trap_eviction_is_amnesty_and_memory_is_unbounded"),
    });
}

#[test]
fn eviction_of_the_blocked() {
    caught(&Bug {
        file: "memory/kept.rs",
        right: "self.blocked_for(now) == 0 && self.definition.engine.is_idle(&self.state, now)",
        wrong: "self.definition.engine.is_idle(&self.state, now)",
        caught_by: ("traps", "trap_eviction_is_amnesty_for_the_blocked_and_the_busy"),
    });
}

#[test]
fn eviction_of_permits_in_flight() {
    caught(&Bug {
        file: "algorithm/concurrency.rs",
        right: "state.permits == 0 && state.since <= now",
        wrong: "state.since <= now",
        caught_by: ("bounded", "flood::the_busy_stay_busy"),
    });
}

#[test]
fn permit_from_before_a_reset_that_comes_back() {
    caught(&Bug {
        file: "algorithm/concurrency.rs",
        right: "if charged_at >= state.since {",
        wrong: "if charged_at > 0 {",
        caught_by: ("vectors", "a_permit_from_before_a_reset_does_not_come_back"),
    });
}

#[test]
fn zones_that_share_their_counters() {
    caught(&Bug {
        file: "policy.rs",
        right: "(&self.name, self.algorithm, limited, window, &self.zone)",
        wrong: "static UTC: Zone = Zone::UTC;
        (&self.name, self.algorithm, limited, window, &UTC)",
        caught_by: ("calendar", "zones_do_not_mix"),
    });
}

#[test]
fn units_that_are_carried_where_time_should_be() {
    caught(&Bug {
        file: "algorithm/token_bucket.rs",
        right: "if self.carries_time { self.per_nano } else { self.per_unit }",
        wrong: "self.per_unit",
        caught_by: ("conformance", "a_changed_window_carries_the_time"),
    });
}

#[test]
fn grains_that_are_taken_for_each_other() {
    caught(&Bug {
        file: "policy.rs",
        right: "self.same_counters(other) && grains(self) == grains(other)",
        wrong: "self.same_counters(other) && grains(self).is_some()",
        caught_by: (
            "vectors",
            "any_window::odd_rates_are_rounded_against_the_caller_by_less_than_a_nanosecond",
        ),
    });
}

#[test]
fn units_given_back_at_the_rate_of_another_window() {
    caught(&Bug {
        file: "memory/kept.rs",
        right: "        if policy.is_any_window() || kept",
        wrong: "        if kept",
        caught_by: ("conformance", "what_is_given_back_is_the_time_it_took"),
    });
}

#[test]
fn conversion_that_is_forgotten_on_a_denial() {
    caught(&Bug {
        file: "memory/kept.rs",
        right: "        self.definition = definition.clone();",
        wrong: "",
        caught_by: ("vectors", "a_wait_told_after_a_change_is_exact"),
    });
}

#[test]
fn checks_that_overtake_those_who_wait() {
    caught(&Bug {
        file: "waiting.rs",
        right: "if cost > 0 && self.is_waited_for(place)",
        wrong: "if cost == u64::MAX && self.is_waited_for(place)",
        caught_by: ("waiting", "order::a_large_cost_is_not_starved_by_checks"),
    });
}

#[test]
fn a_cancelled_waiter_that_leaves_the_next_asleep() {
    caught(&Bug {
        file: "waiting/room.rs",
        right: "next = was_first.then(|| waker_of_first(line)).flatten();",
        wrong: "next = was_first.then_some(None::<Waker>).flatten();",
        caught_by: ("waiting", "cancelling::when_the_first_leaves_the_next_moves_up_at_once"),
    });
}

#[test]
fn a_permit_that_comes_back_unnoticed() {
    caught(&Bug {
        file: "waiting/room.rs",
        right: "            first.wake();",
        wrong: "            drop(first);",
        caught_by: ("waiting", "giving_back::a_permit_that_is_dropped_goes_to_the_first_in_line"),
    });
}

#[test]
fn a_large_cost_that_small_ones_overtake() {
    caught(&Bug {
        file: "waiting.rs",
        right: "if waiter.is_first(context.waker()) {",
        wrong: "if waiter.is_first(context.waker()) || true {",
        caught_by: ("waiting", "order::a_large_cost_is_not_overtaken_by_small_ones"),
    });
}

#[test]
fn newcomers_that_leave_a_busy_cell() {
    caught(&Bug {
        file: "memory/entry.rs",
        right: "let is_taken = || self.overflow.is_busy(cell, now);",
        wrong: "let is_taken = || false && self.overflow.is_busy(cell, now);",
        caught_by: ("bounded", "overflow::room_that_appears_is_no_amnesty"),
    });
}

#[test]
fn keys_that_are_not_counted() {
    caught(&Bug {
        file: "memory/pool.rs",
        right: "(keys < self.max_keys).then_some(keys + 1)",
        wrong: "(keys <= self.max_keys).then_some(keys + 1)",
        caught_by: ("bounded", "cap::room_for_none_or_one"),
    });
}

#[test]
fn credit_that_a_cell_gives() {
    caught(&Bug {
        file: "memory.rs",
        right: "            if is_shared && !counts_permits {",
        wrong: "            if false && is_shared && !counts_permits {",
        caught_by: ("regressions", "nothing_is_given_back_to_a_cell_that_was_charged_elsewhere"),
    });
}

#[test]
fn state_file_without_what_is_aside() {
    caught(&Bug {
        file: "memory/table.rs",
        right: "self.side.with(number, |kept| found(mark, kept));",
        wrong: "let _ = number;",
        caught_by: ("state", "round_trip::every_key_stands_as_it_stood"),
    });
}

#[test]
fn state_file_that_is_not_summed_up() {
    caught(&Bug {
        file: "memory/state/format.rs",
        right: "        if self.u64()? != sum {",
        wrong: "        if self.u64()? == 0 && sum == 0 {",
        caught_by: ("state", "damage::a_bit_that_flipped_is_noticed_wherever_it_is"),
    });
}

#[test]
fn state_file_written_in_place() {
    caught(&Bug {
        file: "memory/state.rs",
        right: "    path.with_file_name(name)
}

/// The end of the names",
        wrong: "    let _ = name;
    path.with_extension(\"state\")
}

/// The end of the names",
        caught_by: ("state", "children::disk_full"),
    });
}

/// The workspace with the bug in it builds, and the named test fails on it.
fn caught(bug: &Bug) {
    // There is one copy for all. (Under nextest, where each test is a process of its own, its
    // configuration lets them take turns.)
    static TURNS: Mutex<()> = Mutex::new(());
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);

    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("deliberate-bugs");
    let _ = fs::remove_dir_all(&copy);
    for part in ["Cargo.toml", "Cargo.lock", "crates", "examples"] {
        copy_all(&workspace.join(part), &copy.join(part));
    }

    let file = copy.join("crates/dashpot/src").join(bug.file);
    let source = fs::read_to_string(&file).unwrap();
    let found = source.matches(bug.right).count();
    assert_eq!(found, 1, "`{}` stands {found} times in {}", bug.right, bug.file);
    fs::write(&file, source.replace(bug.right, bug.wrong)).unwrap();

    let (binary, test) = bug.caught_by;
    let built = cargo(&copy, "800", &["--test", binary, "--no-run"]);
    assert!(built.status.success(), "the bug does not build:\n{}", said(&built));
    // Threads do not get into each other's way every time.
    let mut told = String::new();
    for _ in 0..10 {
        let run = cargo(&copy, "40", &["--test", binary, "--", "--exact", test]);
        told = said(&run);
        // Who waits for a lock that nobody lets go has noticed, too.
        let has_failed = told.contains(&format!("test {test} ... FAILED"));
        let is_stuck = run.status.code() == Some(TIMED_OUT);
        if has_failed && !run.status.success() || is_stuck {
            return;
        }
    }
    panic!("{binary}.rs: {test} did not notice the bug:\n{told}");
}

/// How `timeout` ends when it has to end what it runs.
const TIMED_OUT: i32 = 124;

fn cargo(workspace: &Path, seconds: &str, args: &[&str]) -> Output {
    // What cargo and nextest tell this test about itself would mislead the one below.
    let ours = |name: &str| {
        name != "CARGO_HOME" && (name.starts_with("CARGO") || name.starts_with("NEXTEST"))
    };
    let mut command = Command::new("timeout");
    command.arg(seconds).arg(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(ours)) {
        command.env_remove(name);
    }
    command
        .args(["test", "--offline", "--package", "dashpot"])
        // Slower than other tests have it: threads that take longer get more often into each other's way.
        .args(["--config", "profile.dev.package.dashpot.opt-level=1"])
        .args(args)
        .current_dir(workspace)
        // One for all bugs, so that dependencies are built once, and not the one this test was
        // built in: to cargo the copy looks the same as the workspace, which would then be run
        // with the bug in it.
        .env("CARGO_TARGET_DIR", workspace.with_extension("target"))
        // One crate waits for the other anyway; so the other cores are left to other tests.
        .env("CARGO_BUILD_JOBS", "1")
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    format!("{stdout}\n{stderr}")
}

fn copy_all(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy_all(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
}
