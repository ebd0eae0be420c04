//! Thousands of calls of all sorts, each held to what it may be.

use std::thread;
use std::time::Duration;

use dashpot_testkit::RedisServer;
use dashpot_testkit::redis::Connection;
use fastrand::Rng;

use crate::model::Model;
use crate::scene::Scene;

const CALLS: usize = 2000;

/// So many on the same keys; after that others, since a slow rate may have closed them for an hour.
const STRETCH: usize = 50;

/// Those of which something comes back from call to call.
const FAST: [[i64; 3]; 8] = [
    [0, 100, 1],
    [9, 70, 1],
    [4, 55, 1],
    [29, 130, 1],
    [2, 7 * 11, 1],
    [99, 1000, 1],
    [19, 35, 1],
    [6, 7000, 60],
];

/// Those of which nothing does, or not much.
const SLOW: [[i64; 3]; 10] = [
    [0, 1, 60],
    [0, 1, 1],
    [15, 30, 60],
    [4, 1, 1],
    [6, 7, 1],
    [10, 11, 1],
    [12, 13, 1],
    [99, 91, 60],
    [3, 77, 3600],
    [499, 1001, 86_400],
];

fn numbers(random: &mut Rng, stretch: usize) -> Vec<i64> {
    let fast = match stretch % 4 {
        0 | 1 => true,
        2 => false,
        _ => random.bool(),
    };
    let set: &[[i64; 3]] = if fast { &FAST } else { &SLOW };
    let mut numbers = set[random.usize(..set.len())].to_vec();
    let limit = numbers[0] + 1;
    match random.u8(..12) {
        0..=4 => {}
        5 | 6 => numbers.push(0),
        7 | 8 => numbers.push(random.i64(1..=3)),
        9 => numbers.push(limit),
        10 => numbers.push(limit + random.i64(1..=2)),
        _ => numbers.push(random.i64(0..=limit)),
    }
    numbers
}

fn key(random: &mut Rng, seed: u64, stretch: usize) -> String {
    format!("{seed}-{stretch}-{}", random.u8(..2))
}

/// By the count: enough of them passed, and enough did not, to mean something.
fn is_worth_something(limited: usize) {
    println!("{limited} of {CALLS} limited");
    assert!((CALLS / 8..CALLS * 7 / 8).contains(&limited), "{limited} limited of {CALLS}");
}

fn one_by_one(mut model: Model, mut connections: [Connection; 2], seed: u64) {
    let mut random = Rng::with_seed(seed);
    let mut limited = 0;
    for nth in 0..CALLS {
        let stretch = nth / STRETCH;
        let (key, numbers) = (key(&mut random, seed, stretch), numbers(&mut random, stretch));
        let told = model.ask(&mut connections[nth % 2], &key, &numbers);
        limited += usize::from(told[0] == 1);
        // Time is part of it.
        if random.u8(..4) == 0 {
            thread::sleep(Duration::from_micros(random.u64(..8000)));
        }
    }
    is_worth_something(limited);
}

fn in_pipelines(mut model: Model, mut connection: Connection, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let (mut limited, mut nth) = (0, 0);
    while nth < CALLS {
        let stretch = nth / STRETCH;
        let asked: Vec<_> = (0..random.usize(1..20))
            .map(|_| (key(&mut random, seed, stretch), numbers(&mut random, stretch)))
            .collect();
        let told = model.ask_all(&mut connection, &asked);
        limited += told.iter().filter(|told| told[0] == 1).count();
        nth += asked.len();
        thread::sleep(Duration::from_micros(random.u64(..8000)));
    }
    is_worth_something(limited);
}

#[test]
fn in_memory_one_by_one() {
    let scene = Scene::start(&[]);
    thread::scope(|scope| {
        for seed in [1, 2, 3] {
            let connections = [scene.connect(), scene.connect()];
            scope.spawn(move || one_by_one(Model::in_memory(), connections, seed));
        }
    });
}

#[test]
fn in_memory_in_pipelines() {
    let scene = Scene::start(&[]);
    in_pipelines(Model::in_memory(), scene.connect(), 4);
}

#[test]
fn on_redis_one_by_one() {
    let redis = RedisServer::start();
    let scene = Scene::on(&redis);
    one_by_one(Model::on_redis(), [scene.connect(), scene.connect()], 5);
    assert_eq!(redis.keys_without_ttl(), [b""; 0]);
}

#[test]
fn on_redis_in_pipelines() {
    let redis = RedisServer::start();
    let scene = Scene::on(&redis);
    in_pipelines(Model::on_redis(), scene.connect(), 6);
}
