//! Lines: who goes first, and who has to make room.

use super::{Answer, Answering, SECOND, Scene, hold_as};

const RULE: &str = "
[[rule]]
name = 'worker'
capacity = { limit = 1, places = 4, wait = '1min' }
";

/// Those who come, by path and name, in this order.
async fn come(scene: &Scene, callers: &[(&str, &str)]) -> Vec<Answering> {
    let mut all = Vec::new();
    for (path, name) in callers {
        all.push(scene.begin(hold_as(path, name)).await);
    }
    all
}

/// Those who are served, in the order in which they are.
async fn served(scene: &Scene) -> Vec<String> {
    for _ in 0..10 {
        scene.go(1).await;
    }
    scene.names()
}

#[tokio::test]
async fn first_come_first_served() {
    let scene = Scene::classed(RULE);
    let _all = come(&scene, &[("/", "0"), ("/", "1"), ("/", "2"), ("/", "3"), ("/", "4")]).await;
    assert_eq!(scene.inside(), (1, 4));
    assert_eq!(served(&scene).await, ["0", "1", "2", "3", "4"]);
}

#[tokio::test]
async fn critical_ones_first_and_background_last() {
    let scene = Scene::classed(RULE);
    let callers =
        [("/", "in"), ("/reports", "last"), ("/", "second"), ("/pay", "first"), ("/", "third")];
    let _all = come(&scene, &callers).await;
    assert_eq!(served(&scene).await, ["in", "first", "second", "third", "last"]);
}

/// Nobody is overtaken by who comes when there is just room.
#[tokio::test]
async fn who_comes_when_somebody_leaves_does_not_jump_the_line() {
    let scene = Scene::classed(RULE);
    let _all = come(&scene, &[("/", "in"), ("/", "waits")]).await;
    scene.work.go.as_ref().unwrap().add_permits(1);
    let _late = scene.begin(hold_as("/", "late")).await;
    assert_eq!(served(&scene).await, ["in", "waits", "late"]);
}

#[tokio::test]
async fn a_newcomer_takes_the_place_of_the_last_of_a_lower_class() {
    let scene = Scene::classed(RULE);
    let callers = [("/", "in"), ("/reports", "b1"), ("/", "n1"), ("/reports", "b2"), ("/", "n2")];
    let mut all = come(&scene, &callers).await;
    let (n2, b2, n1, b1) =
        (all.pop().unwrap(), all.pop().unwrap(), all.pop().unwrap(), all.pop().unwrap());
    // The least important first, and of those who came last.
    let mut critical = come(&scene, &[("/pay", "c1")]).await;
    Answer::of(b2).await.assert_shed();
    critical.extend(come(&scene, &[("/pay", "c2")]).await);
    Answer::of(b1).await.assert_shed();
    critical.extend(come(&scene, &[("/pay", "c3")]).await);
    Answer::of(n2).await.assert_shed();
    critical.extend(come(&scene, &[("/pay", "c4")]).await);
    Answer::of(n1).await.assert_shed();
    // Nobody is less important than they are now.
    scene.get("/pay").await.assert_shed();
    assert_eq!(scene.inside(), (1, 4));
    assert_eq!(served(&scene).await, ["in", "c1", "c2", "c3", "c4"]);
    assert_eq!((scene.priority("pay"), scene.priority("reports")), ((4, 1), (0, 2)));
    assert_eq!(scene.tally("worker"), (5, 5, 0));
}

#[tokio::test]
async fn nobody_makes_room_for_equals_or_for_less() {
    let scene = Scene::classed(RULE);
    let callers = [("/", "in"), ("/", "n1"), ("/", "n2"), ("/pay", "c1"), ("/", "n3")];
    let _all = come(&scene, &callers).await;
    scene.get("/").await.assert_shed();
    scene.get("/reports").await.assert_shed();
    assert_eq!(served(&scene).await, ["in", "c1", "n1", "n2", "n3"]);
}

/// A class may fill its part only; who waits for it is passed by those who may fill more.
#[tokio::test]
async fn a_class_waits_for_its_own_part() {
    let text = RULE.replace("limit = 1, places = 4", "limit = 4, places = 9")
        + "classes = { normal = '75%', background = '50%' }\n";
    let scene = Scene::classed(&text);
    let background = [("/reports", "b1"), ("/reports", "b2"), ("/reports", "b3")];
    let _background = come(&scene, &background).await;
    assert_eq!(scene.inside(), (2, 1));
    let _normal = come(&scene, &[("/", "n1"), ("/", "n2")]).await;
    assert_eq!(scene.inside(), (3, 2));
    let _critical = come(&scene, &[("/pay", "c1"), ("/pay", "c2")]).await;
    assert_eq!(scene.inside(), (4, 3));
    // One leaves: three are in, of whom a critical one may be the fourth, and none else.
    scene.go(1).await;
    assert_eq!(scene.inside(), (4, 2));
    assert_eq!(scene.names().last().map(String::as_str), Some("c2"));
    scene.go(1).await;
    assert_eq!(scene.inside(), (3, 2), "the last place is not for them");
    scene.go(1).await;
    assert_eq!(scene.names().last().map(String::as_str), Some("n2"));
    for _ in 0..9 {
        scene.go(1).await;
    }
    assert_eq!((scene.inside(), scene.names().len()), ((0, 0), 7));
}

#[tokio::test]
async fn who_waits_too_long_makes_room_in_the_line() {
    let scene = Scene::classed(&RULE.replace("places = 4", "places = 1"));
    let mut all = come(&scene, &[("/", "in"), ("/", "late")]).await;
    scene.get("/").await.assert_shed();
    scene.advance(SECOND * 60).await;
    Answer::of(all.pop().unwrap()).await.assert_shed();
    let _more = come(&scene, &[("/", "next")]).await;
    assert_eq!(scene.inside(), (1, 1));
    assert_eq!(served(&scene).await, ["in", "next"]);
}
