//! What the page says about the command, sentence by sentence.

use dashpot_testkit::redis::Reply;

use crate::scene::{DAY, Scene, ask, ask_all, both, refused, told, words};

#[test]
fn a_quantity_is_one_if_it_is_left_out() {
    both(|scene| {
        let mut connection = scene.connect();
        assert_eq!(ask(&mut connection, "a", &[9, 1, DAY]), [0, 10, 9, -1, DAY]);
        assert_eq!(ask(&mut connection, "b", &[9, 1, DAY, 1]), [0, 10, 9, -1, DAY]);
        assert_eq!(ask(&mut connection, "a", &[9, 1, DAY, 4]), [0, 10, 5, -1, 5 * DAY]);
        assert_eq!(ask(&mut connection, "a", &[9, 1, DAY, 5]), [0, 10, 0, -1, 10 * DAY]);
        assert_eq!(ask(&mut connection, "a", &[9, 1, DAY]), [1, 10, 0, DAY, 10 * DAY]);
    });
}

#[test]
fn quantity_zero_only_looks() {
    both(|scene| {
        let mut connection = scene.connect();
        for _ in 0..3 {
            assert_eq!(ask(&mut connection, "k", &[2, 1, DAY, 0]), [0, 3, 3, -1, 0]);
        }
        assert_eq!(ask(&mut connection, "k", &[2, 1, DAY, 2]), [0, 3, 1, -1, 2 * DAY]);
        for _ in 0..3 {
            assert_eq!(ask(&mut connection, "k", &[2, 1, DAY, 0]), [0, 3, 1, -1, 2 * DAY]);
        }
        assert_eq!(ask(&mut connection, "k", &[2, 1, DAY, 1]), [0, 3, 0, -1, 3 * DAY]);
        // All of it is used, and that is still what these numbers let pass.
        assert_eq!(ask(&mut connection, "k", &[2, 1, DAY, 0]), [0, 3, 0, -1, 3 * DAY]);
        // With these it never would have.
        let looked = ask(&mut connection, "k", &[0, 1, DAY, 0]);
        assert_eq!(looked, [1, 1, 0, 2 * DAY, 3 * DAY]);
        let looked = ask(&mut connection, "k", &[2, 2, DAY, 0]);
        assert_eq!(looked, [1, 3, 0, 3 * DAY / 2, 3 * DAY]);
    });
}

#[test]
fn more_than_the_bucket_never_passes() {
    both(|scene| {
        let mut connection = scene.connect();
        assert_eq!(ask(&mut connection, "k", &[2, 1, DAY, 4]), [1, 3, 3, -1, 0]);
        assert_eq!(ask(&mut connection, "k", &[2, 1, DAY, i64::MAX]), [1, 3, 3, -1, 0]);
        assert_eq!(ask(&mut connection, "k", &[2, 1, DAY, 3]), [0, 3, 0, -1, 3 * DAY]);
        assert_eq!(ask(&mut connection, "k", &[2, 1, DAY, 4]), [1, 3, 0, -1, 3 * DAY]);
    });
}

#[test]
fn who_is_limited_has_taken_nothing() {
    both(|scene| {
        let mut connection = scene.connect();
        assert_eq!(ask(&mut connection, "k", &[4, 1, DAY, 3]), [0, 5, 2, -1, 3 * DAY]);
        for _ in 0..20 {
            assert_eq!(ask(&mut connection, "k", &[4, 1, DAY, 3]), [1, 5, 2, DAY, 3 * DAY]);
        }
        assert_eq!(ask(&mut connection, "k", &[4, 1, DAY, 2]), [0, 5, 0, -1, 5 * DAY]);
    });
}

/// A token bucket: after a rest all at once, and what comes back.
#[test]
fn what_comes_back_comes_evenly() {
    both(|scene| {
        let mut connection = scene.connect();
        // Ten a second and five at once: all that passes in a while is five, and ten for each second of it.
        let begun = std::time::Instant::now();
        let mut passed = 0;
        let mut first = None;
        while begun.elapsed().as_millis() < 1250 {
            if ask(&mut connection, "k", &[4, 10, 1])[0] == 0 {
                passed += 1;
                first.get_or_insert_with(std::time::Instant::now);
            }
        }
        let longest = 5 + begun.elapsed().as_millis() / 100;
        assert!(passed <= longest, "{passed} in {:?}", begun.elapsed());
        // It was asked far more often than that, and nothing was left lying.
        let least = 5 + (first.unwrap().elapsed().as_millis() - 50) / 100 - 1;
        assert!(passed >= least, "{passed} in {:?}", begun.elapsed());
    });
}

#[test]
fn keys_are_any_bytes_and_are_counted_apart() {
    both(|scene| {
        let mut connection = scene.connect();
        let long = [b'x'; 1024];
        let mut other = long;
        other[1023] = b'y';
        let keys: [&[u8]; 14] = [
            b"",
            b" ",
            b"\0",
            b"\0\0",
            b"a",
            b"A",
            b"{a}",
            b"{a}b",
            b"\r\n",
            b"\xff\xfe\x80",
            b"\xff\xfe\x81",
            "schlüssel".as_bytes(),
            &long,
            &other,
        ];
        for key in keys {
            assert_eq!(ask(&mut connection, key, &[0, 1, DAY]), [0, 1, 0, -1, DAY], "{key:?}");
        }
        for key in keys {
            assert_eq!(ask(&mut connection, key, &[0, 1, DAY]), [1, 1, 0, DAY, DAY], "{key:?}");
        }
    });
}

#[test]
fn every_single_byte_is_a_key() {
    both(|scene| {
        let mut connection = scene.connect();
        let commands: Vec<_> = (0..=255u8).map(|byte| words([byte], &[0, 1, DAY])).collect();
        for passes in [0, 1] {
            let replies = connection.commands(&commands).unwrap();
            assert!(replies.iter().all(|reply| told(reply)[0] == passes), "{replies:?}");
        }
    });
}

#[test]
fn its_name_is_read_in_any_case() {
    let scene = Scene::start(&[]);
    let mut connection = scene.connect();
    for (nth, name) in
        ["CL.THROTTLE", "cl.throttle", "Cl.Throttle", "cL.tHROTTLe"].iter().enumerate()
    {
        let reply = connection.command(&[name, "k", "9", "1", "86400"]).unwrap();
        assert_eq!(told(&reply)[2], 9 - nth as i64, "{name}");
    }
    let error = refused(&mut connection, &["CL.THROTTLES", "k", "9", "1", "60"]);
    assert!(error.starts_with("ERR unknown command 'CL.THROTTLES', with args beginning with: "));
}

#[test]
fn pipelines_are_answered_in_order() {
    both(|scene| {
        let mut connection = scene.connect();
        // Each asks about a bucket of another size: that tells which answer is whose. What is answered without the
        // store waits for its turn.
        let mut mixed = Vec::new();
        for nth in 0..200 {
            mixed.push(words(format!("mixed-{nth}"), &[nth, 1, DAY]));
            mixed.push(vec![b"ECHO".to_vec(), nth.to_string().into_bytes()]);
            mixed.push(words("mixed", &[-1, 1, DAY]));
        }
        let replies = connection.commands(&mixed).unwrap();
        for (nth, replies) in (0..).zip(replies.chunks(3)) {
            assert_eq!(told(&replies[0]), [0, nth + 1, nth, -1, DAY]);
            assert_eq!(replies[1], Reply::Text(nth.to_string().into_bytes()));
            let error = "Cell error: Store error: max_burst must not be negative".to_owned();
            assert_eq!(replies[2], Reply::Error(error));
        }
    });
}

/// Who asks first is served first: of one connection that is who wrote first, as with Redis.
#[test]
fn pipelines_are_decided_in_order() {
    both(|scene| {
        let mut connection = scene.connect();
        let numbers: &[i64] = &[199, 1, DAY];
        let told = ask_all(&mut connection, &[("one", numbers); 300]);
        for (nth, told) in (1..).zip(told) {
            let (limited, left) = (i64::from(nth > 200), (200 - nth).max(0));
            let wait = if nth > 200 { DAY } else { -1 };
            assert_eq!(told, [limited, 200, left, wait, nth.min(200) * DAY], "the {nth}th");
        }
        // Also with many keys between them, and other numbers.
        let numbers: Vec<[i64; 3]> = (0..500).map(|nth| [nth, 1, DAY]).collect();
        let keys: Vec<String> = (0..500).map(|nth| format!("key-{}", nth % 50)).collect();
        let asked: Vec<(&str, &[i64])> =
            keys.iter().zip(&numbers).map(|(key, numbers)| (key.as_str(), &numbers[..])).collect();
        for (nth, told) in (0..).zip(ask_all(&mut connection, &asked)) {
            let round = nth / 50;
            assert_eq!(told, [0, nth + 1, nth - round, -1, (round + 1) * DAY], "the {nth}th");
        }
    });
}
