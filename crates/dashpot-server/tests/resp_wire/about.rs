//! What clients ask about the service itself.

use std::collections::BTreeSet;

use crate::redis::Pair;
use crate::reply::Reply;
use crate::scene::{Scene, Wire};

#[test]
fn there_are_hardly_any_settings_to_be_read() {
    let pair = Pair::start();
    pair.same_words(&["CONFIG GET nosuch", "CONFIG GET nosuch nothing", "config get nosuch*"]);
    for asked in ["CONFIG GET requirepass", "CONFIG GET maxmemory databases"] {
        assert_eq!(pair.dashpot.connect().ask(asked), Reply::Many('*', vec![]), "{asked}");
    }
    // What redis-benchmark wants to know, as a Redis tells it that saves nothing.
    pair.same_words(&["CONFIG GET save", "CONFIG GET appendonly", "config get save nosuch"]);
    let mut replies = [pair.redis(), pair.dashpot.resp].map(|address| {
        let both = Wire::to(address).ask("CONFIG GET save appendonly");
        both.items().chunks(2).map(<[Reply]>::to_vec).collect::<Vec<_>>()
    });
    replies.iter_mut().for_each(|pairs| pairs.sort_by_key(|pair| pair[0].text()));
    assert_eq!(replies[0], replies[1]);
}

#[test]
fn commands_are_told_about() {
    let pair = Pair::start();
    pair.same_words(&[
        "COMMAND INFO nosuch",
        "COMMAND INFO nosuch nothing",
        "command info ",
        "COMMAND DOCS nosuch",
    ]);
    let mut wire = pair.dashpot.connect();
    let count = wire.ask("COMMAND COUNT").int();
    let list = wire.ask("COMMAND LIST");
    let mut names: Vec<_> = list.items().iter().map(|name| name.text().to_lowercase()).collect();
    // Redis lists `client|id` beside `client`, and does not count it.
    names.retain(|name| !name.contains('|'));
    assert_eq!(usize::try_from(count).unwrap(), names.len(), "{names:?}");
    for name in [
        "cl.throttle",
        "ping",
        "echo",
        "hello",
        "auth",
        "select",
        "client",
        "command",
        "info",
        "config",
        "reset",
        "quit",
    ] {
        assert!(names.iter().any(|listed| listed == name), "{name} is not in {names:?}");
    }
    for asked in ["COMMAND", "COMMAND INFO"] {
        assert_eq!(wire.ask(asked).items().len(), names.len(), "{asked}");
    }
    // As Redis tells of a command: ten things, the name and the arity first.
    let info = wire.ask("COMMAND INFO cl.throttle nosuch PING");
    let [throttle, nosuch, ping] = info.items() else { panic!("{info:?}") };
    assert!(matches!(nosuch, Reply::Nil(_)), "{nosuch:?}");
    for (told, name) in [(throttle, "cl.throttle"), (ping, "ping")] {
        assert_eq!(told.items()[0].text().to_lowercase(), name);
        assert_eq!(told.items().len(), 10, "{told:?}");
    }
    assert_eq!(ping.items()[1].int(), -1);
    // Names and maps by turns.
    let docs = wire.ask("COMMAND DOCS cl.throttle");
    assert_eq!(docs.items().len(), 2, "{docs:?}");
    assert_eq!(docs.items()[0].text().to_lowercase(), "cl.throttle");
}

#[test]
fn info_has_the_sections_it_promises() {
    let scene = Scene::start(&[]);
    let mut wire = scene.connect();
    let sections =
        ["server", "clients", "persistence", "stats", "replication", "cluster", "throttle"];
    let titles = |text: &str| -> BTreeSet<_> {
        let titles = text.lines().filter_map(|line| line.strip_prefix("# "));
        titles.map(|title| title.trim().to_lowercase()).collect()
    };
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let everything = wire.ask("INFO").text();
    assert_eq!(titles(&everything), set(&sections), "{everything}");
    for section in sections {
        let told = wire.ask(&format!("INFO {section}")).text();
        assert_eq!(titles(&told), set(&[section]), "{told}");
        let told = wire.ask(&format!("info {}", section.to_uppercase())).text();
        assert_eq!(titles(&told), set(&[section]), "{told}");
    }
    let two = ["server", "replication"];
    assert_eq!(titles(&wire.ask("INFO server replication").text()), set(&two));
    assert_eq!(titles(&wire.ask("INFO nosuch").text()), set(&[]));
}
