//! Classes: how much of what is in flight each may fill.

use super::{World, at};

const PRIORITIES: &str = "
[[priority]]
name = 'pay'
match.path = ['/pay', '/both']
class = 'critical'
[[priority]]
name = 'reports'
match.path = ['/reports', '/both']
class = 'background'
[[priority]]
name = 'heavy'
match.path = '/heavy'
weight = 3
[[priority]]
name = 'light'
match.path = '/light'
weight = 0.1
class = 'background'
[[priority]]
name = 'hook'
match.path = '/hook'
weight = 'unlimited'
class = 'background'
";

fn fleet(rest: &str) -> World {
    World::new(&format!("{PRIORITIES}[[rule]]\nname = 'fleet'\nlimits = '10 concurrent'\n{rest}\n"))
}

const CLASSES: &str = "classes = { normal = '80%', background = '50%' }";

/// Which limit a request is held to, and by which counter.
fn held_to(world: &World, path: &str) -> (String, u64) {
    let request = at(path);
    let plan = world.rules.select(&request).plan(&request);
    let check = plan.checks().next().expect("a question");
    (check.policy.name().to_owned(), check.policy.limit())
}

#[test]
fn each_class_may_fill_its_part_and_all_count_together() {
    let world = fleet(CLASSES);
    assert_eq!(world.passes(&at("/reports")), 5);
    assert_eq!(world.passes(&at("/")), 3, "five of eight are there");
    assert_eq!(world.passes(&at("/reports")), 0);
    assert_eq!(world.passes(&at("/pay")), 2, "the last two are left to what is critical");
    assert_eq!(world.passes(&at("/")), 0);
}

#[test]
fn what_is_critical_may_fill_it_all() {
    let world = fleet(CLASSES);
    assert_eq!(world.passes(&at("/pay")), 10);
    assert_eq!(world.passes(&at("/")), 0);
}

#[test]
fn a_class_that_is_not_named_may_fill_as_much_as_the_next_more_important_one() {
    let world = fleet("classes = { background = '50%' }");
    assert_eq!(world.passes(&at("/reports")), 5);
    assert_eq!(world.passes(&at("/")), 5);
    let world = fleet("classes = { normal = '50%' }");
    assert_eq!(world.passes(&at("/reports")), 5);
    assert_eq!(world.passes(&at("/")), 0);
    assert_eq!(world.passes(&at("/pay")), 5);
}

#[test]
fn the_first_priority_that_matches_says_the_class() {
    assert_eq!(held_to(&fleet(CLASSES), "/both"), ("fleet".to_owned(), 10));
}

/// Whatever their weight: a weight makes no room where there is none.
#[test]
fn weights_neither_add_room_nor_counters() {
    let world = fleet(CLASSES);
    assert_eq!(held_to(&world, "/heavy"), ("fleet".to_owned(), 8));
    assert_eq!(held_to(&world, "/light"), ("fleet".to_owned(), 5));
    assert_eq!(world.passes(&at("/heavy")), 8);
    assert_eq!(world.passes(&at("/light")), 0);
    assert_eq!(world.passes(&at("/pay")), 2);
}

#[test]
fn a_class_without_a_weight_leaves_limits_and_counts_everybodys() {
    let world = World::new(&format!("{PRIORITIES}[[rule]]\nname = 'api'\nlimits = '6/h'\n"));
    for path in ["/", "/pay", "/reports"] {
        assert_eq!(held_to(&world, path), ("api".to_owned(), 6), "{path}");
    }
    assert_eq!(held_to(&world, "/heavy"), ("api@heavy".to_owned(), 18));
    assert_eq!(world.passes(&at("/pay")), 6);
    assert_eq!(world.passes(&at("/")), 0);
}

#[test]
fn one_is_left_to_every_class() {
    let world = fleet("classes = { normal = '2%', background = '1%' }");
    assert_eq!(held_to(&world, "/reports").1, 1);
    assert_eq!(held_to(&world, "/").1, 1);
    assert_eq!(world.passes(&at("/reports")), 1);
    assert_eq!(world.passes(&at("/")), 0);
}

#[test]
fn who_is_never_limited_takes_nothing() {
    let world = fleet(CLASSES);
    assert_eq!(world.passes(&at("/hook")), 2000);
    assert_eq!(world.passes(&at("/")), 8);
}

#[test]
fn a_lower_limit_is_shared_in_the_same_parts() {
    let world = fleet(&format!("{CLASSES}\nadaptive = {{ cpu = 'off' }}"));
    world.suffer(50);
    assert_eq!(held_to(&world, "/pay").1, 5);
    assert_eq!(held_to(&world, "/").1, 4);
    assert_eq!(held_to(&world, "/reports").1, 2);
    world.recover();
    assert_eq!(held_to(&world, "/").1, 8);
}

#[test]
fn each_key_is_shared_for_itself() {
    let world = fleet(&format!("{CLASSES}\nby = 'user'"));
    assert_eq!(world.passes(&at("/reports").user("alice")), 5);
    assert_eq!(world.passes(&at("/reports").user("bob")), 5);
    assert_eq!(world.passes(&at("/").user("alice")), 3);
}

#[test]
fn tiers_are_shared_in_parts() {
    let world = World::new(&format!(
        "[identity]\ndefault_tier = 'free'\n{PRIORITIES}[[rule]]\nname = 'fleet'\nby = 'user'\n\
         tiers.free = '10 concurrent'\ntiers.pro = '100 concurrent'\n{CLASSES}\n"
    ));
    assert_eq!(world.passes(&at("/reports").user("alice").tier("pro")), 50);
    assert_eq!(world.passes(&at("/reports").user("bob")), 5);
}

#[test]
fn it_is_about_the_service_and_not_about_the_caller() {
    let file = "[[rule]]\nname = 'plain'\nlimits = '5 concurrent'\n\
                [[rule]]\nname = 'lower'\nlimits = '5/s'\nadaptive = {}\n\
                [[rule]]\nname = 'shared'\nlimits = '5 concurrent'\nclasses.background = '50%'\n\
                [[rule]]\nname = 'worker'\ncapacity.limit = 5\n";
    let world = World::new(file);
    let about = |name: &str| world.rule(name).is_about_the_service();
    assert!(!about("plain") && !about("lower") && about("shared") && about("worker"));
}
