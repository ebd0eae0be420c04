//! What a counter belongs to.

use dashpot::{Algorithm, KeyBuf, Policy, Quota, Window};

use super::{Subject, ask, five, fresh_key, remaining, several};

/// Keys may be empty, long, and hold any bytes; those that differ in one byte are two.
pub async fn keys_are_any_bytes(subject: &impl Subject) {
    // The empty key cannot be made fresh, so its policy is.
    let name = String::from_utf8(fresh_key()).expect("it is text");
    let policy = several(&name, Algorithm::TokenBucket, 5);
    let long = vec![b'k'; 4096];
    let mut longer = long.clone();
    longer.push(b'k');
    let keys: Vec<Vec<u8>> = vec![
        vec![],
        vec![0],
        vec![0, 0],
        vec![0xff],
        vec![0xff, 0xfe, 0x80],
        b"a:b".to_vec(),
        b"a\r\nb".to_vec(),
        b"{a}".to_vec(),
        (0..=255).collect(),
        long,
        longer,
    ];
    for (number, key) in keys.iter().enumerate() {
        let decision = ask(subject, &policy, key, 1 + number as u64 % 5).await;
        assert!(decision.is_allowed(), "{:?}", key.escape_ascii().to_string());
    }
    for (number, key) in keys.iter().enumerate() {
        let left = remaining(subject, &policy, key).await;
        assert_eq!(left, 4 - number as u64 % 5, "{:?}", key.escape_ascii().to_string());
    }
}

/// What one key takes is not taken from another, be they as similar as values can make them.
pub async fn keys_do_not_mix(subject: &impl Subject) {
    let salt = fresh_key();
    let key = |values: [&str; 2]| -> KeyBuf {
        let values = values.into_iter().map(str::as_bytes);
        std::iter::once(&salt[..]).chain(values).collect()
    };
    for algorithm in Algorithm::ALL {
        let policy = five(algorithm);
        let (one, two) = (key(["ab", "c"]), key(["a", "bc"]));
        let (one, two) = (one.as_key().as_bytes(), two.as_key().as_bytes());
        assert!(ask(subject, &policy, one, 5).await.is_allowed(), "{policy}");
        assert_eq!(remaining(subject, &policy, one).await, 0, "{policy}");
        assert_eq!(remaining(subject, &policy, two).await, 5, "{policy}");
    }
}

/// Two policies count the same key separately, even if only their names differ, and even if name
/// and key run together would be the same.
pub async fn names_do_not_mix(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let (one, two) = (several("one", algorithm, 5), several("two", algorithm, 5));
        let key = fresh_key();
        assert!(ask(subject, &one, &key, 5).await.is_allowed(), "{one}");
        assert_eq!(remaining(subject, &two, &key).await, 5, "{two}");

        let (short, long) = (several("name", algorithm, 5), several("namekey", algorithm, 5));
        let salt = fresh_key();
        let (tail, whole) = ([b"key", &salt[..]].concat(), salt);
        assert!(ask(subject, &short, &tail, 5).await.is_allowed(), "{short}");
        assert_eq!(remaining(subject, &long, &whole).await, 5, "{long}");
    }
}

/// A policy that changes its algorithm or its window starts fresh.
pub async fn algorithms_and_windows_do_not_mix(subject: &impl Subject) {
    let key = fresh_key();
    for algorithm in Algorithm::ALL {
        let policy = five(algorithm);
        assert_eq!(remaining(subject, &policy, &key).await, 5, "{policy}");
        assert!(ask(subject, &policy, &key, 5).await.is_allowed(), "{policy}");
    }
    let weekly = Policy::new("five", Quota::new(5, Window::WEEK)).unwrap();
    assert_eq!(remaining(subject, &weekly, &key).await, 5);
}

/// A policy that only changes its counts keeps what was used, up and down.
pub async fn a_changed_count_carries_the_units_used(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let [five, ten, two] = [5, 10, 2].map(|count| several("change", algorithm, count));
        let key = fresh_key();
        assert!(ask(subject, &five, &key, 3).await.is_allowed(), "{five}");
        assert_eq!(remaining(subject, &ten, &key).await, 7, "{ten}");
        assert!(ask(subject, &ten, &key, 3).await.is_allowed(), "{ten}");

        let denial = ask(subject, &two, &key, 1).await;
        assert!(!denial.is_allowed() && !denial.is_never(), "{two}");
        assert_eq!(denial.statuses()[0].remaining(), 0, "{two}");
        // A store may round against the caller, and time may have passed: then nearly one has
        // come back, or nearly one is missing.
        let left = remaining(subject, &ten, &key).await;
        assert!((3..=4).contains(&left), "{ten}: {left}");
    }
}
