//! How soon all is to be well again.

/// Redis that answers again, and a network that works again, are used again within a second: that is promised.
pub(crate) const BACK: f64 = 1.0;
/// A process that is started answers by then. Nothing is promised of that: it is built for tests, reads what it has to
/// remember, and the machine is busy.
pub(crate) const START: f64 = 5.0;
/// By then Redis itself has a primary again, which no limiter has a say in: nodes take a second to see that one is gone,
/// some more to agree on another, and one that comes back empty waits for two before it lets anybody write.
pub(crate) const FAILOVER: f64 = 10.0;
/// Broken rules are told, and good ones used, by then: files are read twice, by all who share them.
pub(crate) const RULES: f64 = 3.0;
/// By then counts are saved again: a second from one time to the next, and as long as a busy disk takes.
pub(crate) const SAVED: f64 = 3.0;

/// What is wrong with a recovery, if anything is, on a machine that was late by itself.
pub(crate) fn judge(fault: &str, seconds: f64, at_most: f64, machine: f64) -> Result<(), String> {
    let at_most = at_most + machine;
    if seconds > at_most {
        return Err(format!("{fault}: well again after {seconds:.3} s, {at_most:.3} s at most"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_back_too_late_is_told_unless_the_machine_was() {
        judge("redis cut", 1.0, BACK, 0.0).unwrap();
        let told = judge("redis cut", 1.01, BACK, 0.0).unwrap_err();
        assert_eq!(told, "redis cut: well again after 1.010 s, 1.000 s at most");
        judge("redis cut", 1.2, BACK, 0.25).unwrap();
        assert!(judge("redis cut", 1.3, BACK, 0.25).is_err());
    }
}
