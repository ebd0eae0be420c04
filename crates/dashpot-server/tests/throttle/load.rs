//! However many ask at once, exactly as much passes as may.

use dashpot_testkit::redis::Reply;
use dashpot_testkit::{RedisCluster, RedisServer, on_all_threads};

use crate::client::PATIENCE;
use crate::scene::{DAY, Scene, Told, ask, both, told, words};
use crate::service::until;

const CONNECTIONS: u64 = 16;

/// A bucket of a hundred, of which nothing comes back.
const HUNDRED: [i64; 3] = [99, 1, DAY];

/// What all are told who ask on all connections at once, in pipelines of as many as these.
fn all(scenes: &[Scene], quantities: &[i64]) -> Vec<(i64, Told)> {
    let answers = on_all_threads(CONNECTIONS, |thread| {
        let mut connection = scenes[thread as usize % scenes.len()].connect();
        let ask = |quantity: &i64| words("k", &[&HUNDRED[..], &[*quantity]].concat());
        let commands: Vec<_> = quantities.iter().map(ask).collect();
        let replies = connection.commands(&commands).unwrap();
        let answers = quantities.iter().copied().zip(replies.iter().map(told));
        answers.collect::<Vec<_>>()
    });
    answers.concat()
}

fn exactly_a_hundred_pass(scenes: &[Scene]) {
    let answers = all(scenes, &[1; 40]);
    let passed: Vec<_> = answers.iter().filter(|(_, told)| told[0] == 0).collect();
    assert_eq!(passed.len(), 100);
    // Each of them was told another rest.
    let mut rests: Vec<i64> = passed.iter().map(|(_, told)| told[2]).collect();
    rests.sort_unstable();
    assert_eq!(rests, (0..100).collect::<Vec<i64>>());
    let denied = answers.iter().filter(|(_, told)| told[0] == 1);
    for (_, told) in denied {
        assert_eq!(*told, [1, 100, 0, DAY, 100 * DAY]);
    }
    for scene in scenes {
        let left = ask(&mut scene.connect(), "k", &[99, 1, DAY, 0]);
        assert_eq!(left, [0, 100, 0, -1, 100 * DAY]);
    }
}

fn exactly_a_hundred_units_pass(scenes: &[Scene]) {
    let answers = all(scenes, &[3, 0, 1, 2, 101, 7, 0, 1, 1, 2]);
    let passed = answers.iter().filter(|(_, told)| told[0] == 0);
    let taken: i64 = passed.map(|(quantity, _)| quantity).sum();
    // There are ones enough that nothing stays.
    assert_eq!(taken, 100);
    let never = answers.iter().filter(|(quantity, _)| *quantity == 101);
    assert!(never.clone().all(|(_, told)| told[0] == 1 && told[3] == -1));
}

#[test]
fn in_memory() {
    exactly_a_hundred_pass(&[Scene::start(&[])]);
    exactly_a_hundred_units_pass(&[Scene::start(&[])]);
}

#[test]
fn in_memory_on_many_threads() {
    exactly_a_hundred_pass(&[Scene::start(&["--threads", "4"])]);
    exactly_a_hundred_units_pass(&[Scene::start(&["--threads", "4"])]);
}

#[test]
fn on_redis_by_two_processes() {
    let redis = RedisServer::start();
    exactly_a_hundred_pass(&[Scene::on(&redis), Scene::on(&redis)]);
    redis.command(&["FLUSHALL"]);
    exactly_a_hundred_units_pass(&[Scene::on(&redis), Scene::on(&redis)]);
}

/// Many keys do not get into each other's way.
fn each_key_is_exact(scene: &Scene) {
    let answers = on_all_threads(8, |_| {
        let mut connection = scene.connect();
        let keys = (0..400).map(|nth| words(format!("key-{}", nth % 40), &[6, 1, DAY]));
        let replies = connection.commands(&keys.collect::<Vec<_>>()).unwrap();
        replies.iter().filter(|reply| told(reply)[0] == 0).count()
    });
    assert_eq!(answers.iter().sum::<usize>(), 40 * 7);
}

#[test]
fn many_keys() {
    both(each_key_is_exact);
}

#[test]
fn many_keys_on_a_cluster() {
    let cluster = RedisCluster::start();
    let scene = Scene::with_store(&cluster.url(), "deny");
    // Every node, and not only the one that one key is on.
    let mut connection = scene.connect();
    let looks: Vec<_> = (0..40).map(|nth| words(format!("key-{nth}"), &[6, 1, DAY, 0])).collect();
    until("the cluster", PATIENCE, || {
        let replies = connection.commands(&looks).unwrap();
        replies.iter().all(|reply| matches!(reply, Reply::Array(_))).then_some(())
    });
    each_key_is_exact(&scene);
    // Braces in a key are nobody's business but its own.
    for key in ["{a}b", "{a}c", "{}", "}{", "{", "a}b"] {
        assert_eq!(ask(&mut connection, key, &[0, 1, DAY])[0], 0, "{key}");
        assert_eq!(ask(&mut connection, key, &[0, 1, DAY])[0], 1, "{key}");
    }
}

/// Keys that somebody makes up do not make it forget who is limited.
#[test]
fn more_keys_than_it_remembers() {
    let scene = Scene::with_rules("[memory]\nmax_keys = 1000\n", &[]);
    let mut connection = scene.connect();
    assert_eq!(ask(&mut connection, "victim", &[0, 1, DAY])[0], 0);
    for round in 0..20 {
        let keys = (0..500).map(|nth| words(format!("{round}-{nth}"), &[round, 1, DAY]));
        let replies = connection.commands(&keys.collect::<Vec<_>>()).unwrap();
        assert!(replies.iter().all(|reply| told(reply)[1] == round + 1));
    }
    assert_eq!(ask(&mut connection, "victim", &[0, 1, DAY])[0], 1);
}
