//! YAML that changes while it runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use crate::door::{Answer, Door};
use crate::scene::{CONFIG, Scene, home};
use crate::service::{Directory, until};

/// Files are looked at twice a second; the rest is for a machine that has other things to do.
const SEEN: Duration = Duration::from_secs(10);
const ENTRY: [(&str, &str); 1] = [("k", "alice")];

fn yaml(count: u32) -> String {
    format!(
        "domain: d\ndescriptors:\n  - key: k\n    rate_limit:\n      unit: day\n      requests_per_unit: {count}\n"
    )
}

/// Looks until it is told of this count.
fn until_count(scene: &Scene, count: u32) -> Answer {
    until("the new limit", SEEN, || {
        let answer = scene.cost("d", &ENTRY, 0);
        (answer.statuses[0].limit.as_ref()?.count == count).then_some(answer)
    })
}

#[test]
fn a_change_is_taken_and_what_was_used_stays_used() {
    for door in [Door::Grpc, Door::Json] {
        let scene = Scene::start(&yaml(5), &[]).by(door);
        scene.cost("d", &ENTRY, 5).passes(0);
        scene.hit("d", &ENTRY).is_denied(0);
        scene.home.replace("config/limits.yaml", &yaml(8));
        until_count(&scene, 8).passes(3);
        scene.cost("d", &ENTRY, 3).passes(0);
        // To less than was used.
        scene.home.replace("config/limits.yaml", &yaml(2));
        until_count(&scene, 2).is_denied(0);
        scene.hit("d", &ENTRY).is_denied(0);
    }
}

/// Counts belong to the descriptor and its unit, wherever in the files it is.
#[test]
fn what_moves_goes_on() {
    let scene = Scene::start(&yaml(5), &[]);
    scene.cost("d", &ENTRY, 4).passes(1);
    let before = "domain: d\ndescriptors:\n  - key: new\n    rate_limit: { unit: day, requests_per_unit: 1 }\n";
    let moved = yaml(6).replace("domain: d\ndescriptors:\n", before);
    scene.home.replace("config/limits.yaml", &moved);
    until_count(&scene, 6).passes(2);
    scene.holds("d", &[("new", "")], 1, "DAY");
}

#[test]
fn files_come_and_go() {
    let scene = Scene::start(&yaml(5), &[]);
    scene.hit("e", &ENTRY).is_free();
    scene.home.write("config/more.yaml", &yaml(7).replace("domain: d", "domain: e"));
    until("the new file", SEEN, || {
        scene.cost("e", &ENTRY, 0).statuses[0].limit.is_some().then_some(())
    });
    scene.holds("e", &ENTRY, 7, "DAY");
    fs::remove_file(scene.home.path().join("config/more.yaml")).unwrap();
    until("the file to be gone", SEEN, || {
        scene.cost("e", &ENTRY, 0).statuses[0].limit.is_none().then_some(())
    });
    scene.holds("d", &ENTRY, 5, "DAY");
}

/// The configuration becomes wrong in this way. What is said of that in the log.
fn breaks(wrong: &str, word: &str) -> String {
    let scene = Scene::start(&yaml(5), &[]);
    scene.hit("d", &ENTRY).passes(4);
    let failed = || scene.service.metric("dashpot_failed_reloads_total");
    assert_eq!(failed(), 0.0);
    scene.home.replace("config/limits.yaml", wrong);
    until("the log", SEEN, || scene.service.log().contains(word).then_some(()));
    until("the failure to be counted", SEEN, || (failed() >= 1.0).then_some(()));
    let answer = scene.hit("d", &ENTRY);
    answer.passes(3);
    assert_eq!(answer.status().limit().count, 5, "the last good one stays");
    assert_eq!(scene.service.client().get("/readyz").status, 200);
    // Right again, it is taken.
    scene.home.replace("config/limits.yaml", &yaml(9));
    until_count(&scene, 9).passes(7);
    scene.service.log()
}

/// It is told where, and not each time it looks.
fn breaks_at(wrong: &str, place: &str) {
    let log = breaks(wrong, place);
    assert_eq!(log.matches(place).count(), 1, "{log}");
}

#[test]
fn a_wrong_word_changes_nothing() {
    breaks_at(&yaml(5).replace("day", "dya"), "limits.yaml:5:13");
}

#[test]
fn a_wrong_key_changes_nothing() {
    breaks_at(&yaml(5).replace("requests_per_unit", "request_per_unit"), "limits.yaml:6:7");
}

#[test]
fn wrong_syntax_changes_nothing() {
    breaks("domain: 'd\ndescriptors:\n", "limits.yaml:");
}

/// An editor that empties a file before it writes must not leave everybody unlimited meanwhile.
#[test]
fn an_empty_file_changes_nothing() {
    breaks("", "limits.yaml");
}

/// Puts another version in the place of the one that is mounted.
fn version(mounted: &Path, name: &str, text: &str) {
    fs::create_dir(mounted.join(name)).unwrap();
    fs::write(mounted.join(name).join("limits.yaml"), text).unwrap();
    let new = mounted.join("..data_tmp");
    symlink(name, &new).unwrap();
    fs::rename(new, mounted.join("..data")).unwrap();
}

/// As a ConfigMap is mounted: the files are links into a link that is replaced.
#[test]
fn links_that_are_swapped_are_a_change() {
    let home = Directory::new();
    let mounted = home.path().join(CONFIG);
    fs::create_dir(&mounted).unwrap();
    version(&mounted, "..one", &yaml(5));
    symlink("..data/limits.yaml", mounted.join("limits.yaml")).unwrap();
    let scene = Scene::start_in(home, &["--envoy-config", CONFIG]);
    scene.hit("d", &ENTRY).passes(4);
    version(&mounted, "..two", &yaml(6));
    fs::remove_dir_all(mounted.join("..one")).unwrap();
    until_count(&scene, 6).passes(5);
}

/// As envoyproxy/ratelimit has it: the directory itself is a link.
#[test]
fn a_directory_that_is_swapped_is_a_change() {
    let home = home(&[]);
    for (name, count) in [("one", 5), ("two", 6)] {
        fs::create_dir(home.path().join(name)).unwrap();
        home.write(&format!("{name}/limits.yaml"), &yaml(count));
    }
    symlink("one", home.path().join("current")).unwrap();
    let scene = Scene::start_in(home, &["--envoy-config", "current"]);
    scene.hit("d", &ENTRY).passes(4);
    let path = scene.home.path();
    symlink("two", path.join("next")).unwrap();
    fs::rename(path.join("next"), path.join("current")).unwrap();
    until_count(&scene, 6).passes(5);
}

#[test]
fn told_to_it_reads_at_once() {
    let scene = Scene::start(&yaml(5), &[]);
    scene.home.replace("config/limits.yaml", &yaml(6));
    scene.service.signal("HUP");
    until_count(&scene, 6);
}
