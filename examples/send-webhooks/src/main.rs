//! A webhook sender: an even flow to each destination, retries that can be told by their key, dead letters.

mod receiver;
mod sender;

use std::time::{Duration, Instant};

use dashpot_client::Report;
use receiver::{Inbox, receivers};
use sender::{DeadLetter, Letter, Sender};
use story::{Failure, Story};

/// Sends so many letters to a destination, all at once.
async fn send(sender: &Sender, to: String, letters: usize) -> Outcome {
    let start = Instant::now();
    let tasks: Vec<_> = (0..letters)
        .map(|number| {
            let (sender, letter) =
                (sender.clone(), Letter { to: to.clone(), text: format!("{number}") });
            tokio::spawn(async move { sender.deliver(letter).await })
        })
        .collect();
    let mut outcome = Outcome { delivered: Vec::new(), dead: Vec::new(), took: Duration::ZERO };
    for task in tasks {
        match task.await {
            Ok(Ok(report)) => outcome.delivered.push(report),
            Ok(Err(dead)) => outcome.dead.push(dead),
            Err(panic) => eprintln!("{panic}"),
        }
    }
    outcome.took = start.elapsed();
    outcome.tell(&to);
    outcome
}

struct Outcome {
    delivered: Vec<Report>,
    dead: Vec<DeadLetter>,
    took: Duration,
}

impl Outcome {
    fn tell(&self, to: &str) {
        let (delivered, dead) = (self.delivered.len(), self.dead.len());
        println!("{to}: {delivered} delivered, {dead} dead, {:.1?}", self.took);
        if let Some(last) = self.delivered.last() {
            println!("   the last: {last}");
        }
        if let Some(DeadLetter { letter, why }) = self.dead.first() {
            println!("   letter {} is dead: {why}", letter.text);
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let inbox = Inbox::default();
    let here = Story::begin(receivers(&inbox)?).await?.url();
    let sender = Sender::new()?;

    println!("-- an even flow: ten letters at twenty a second");
    let calm = send(&sender, format!("{here}/calm"), 10).await;
    assert!(calm.delivered.len() == 10 && calm.took >= Duration::from_millis(450));

    println!("-- the same four times as slowly, where it is wanted");
    let frail = send(&sender, format!("{here}/frail"), 4).await;
    assert!(frail.delivered.len() == 4 && frail.took >= Duration::from_millis(600));

    println!("-- who says when to come back is believed");
    let strict = send(&sender, format!("{here}/strict"), 6).await;
    assert_eq!(strict.delivered.len(), 6);

    println!("-- done, but the answer got lost: sent again, done once");
    let before = inbox.len();
    let flaky = send(&sender, format!("{here}/flaky"), 5).await;
    assert!(flaky.delivered.len() == 5 && flaky.delivered.iter().all(|one| one.attempts() == 2));
    assert_eq!(inbox.len() - before, 5);

    println!("-- a queue has an end");
    let crowd = send(&sender, format!("{here}/calm"), 60).await;
    assert!(crowd.delivered.len() >= 20 && !crowd.dead.is_empty());

    println!("-- what nobody takes is kept");
    let broken = send(&sender, format!("{here}/broken"), 2).await;
    assert_eq!(broken.dead.len(), 2);

    println!("-- and sent to where it is taken, later");
    for DeadLetter { letter, .. } in broken.dead {
        let letter = Letter { to: format!("{here}/calm"), ..letter };
        assert!(sender.deliver(letter).await.is_ok());
    }
    Ok(())
}
