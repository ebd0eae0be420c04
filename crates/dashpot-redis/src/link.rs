//! One server: a connection that all callers share, and whether it answers.
//!
//! Commands of concurrent callers go out together and are answered in order, so one connection carries
//! them all. The first error of the connection, or three answers in a row that came too late, and the link is
//! down: nobody waits any more, and a task of its own connects anew, four times a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, Pipeline, Value};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use crate::counters::Counters;
use crate::failure::{Failure, Kind};
use crate::script::{self, Script};
use crate::sentinel;
use crate::settings::Settings;
use crate::target::Watched;

/// How often a server that does not answer is tried again.
pub(crate) const PROBE_EVERY: Duration = Duration::from_millis(250);

/// How often one that does is asked whether it still does, in case nobody else asks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How many answers in a row may come too late.
const PATIENCE: u32 = 3;

/// How many commands may be waiting to be written.
const QUEUE: usize = 4096;

/// Where a server is.
#[derive(Debug)]
pub(crate) enum Place {
    Known(ConnectionInfo),
    /// Where sentinels say.
    Watched(Watched),
}

/// How a link is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Its first attempt to connect is under way.
    Starting,
    Up,
    /// For this reason.
    Down(String),
}

/// A connection that is used.
struct Live {
    connection: MultiplexedConnection,
    /// How many answers in a row came too late.
    late: AtomicU32,
}

pub(crate) struct Link {
    place: Place,
    settings: Arc<Settings>,
    live: ArcSwapOption<Live>,
    condition: watch::Sender<Condition>,
    /// Told when the connection is lost.
    lost: Arc<Notify>,
    /// Held while it goes up or down, so that all it says of itself is about the same moment.
    turning: Mutex<()>,
    /// Where it was connected to last.
    found: Mutex<Option<ConnectionAddr>>,
    pub(crate) counters: Counters,
}

impl Link {
    /// A link that is being made.
    pub(crate) fn start(place: Place, settings: Arc<Settings>) -> Arc<Self> {
        let link = Arc::new(Self {
            place,
            settings,
            live: ArcSwapOption::empty(),
            condition: watch::Sender::new(Condition::Starting),
            lost: Arc::default(),
            turning: Mutex::default(),
            found: Mutex::default(),
            counters: Counters::default(),
        });
        tokio::spawn(supervise(Arc::downgrade(&link), link.lost.clone()));
        link
    }

    /// Where it leads, without secrets.
    pub(crate) fn address(&self) -> String {
        match &self.place {
            Place::Known(info) => info.addr().to_string(),
            Place::Watched(watched) => format!("master {}", watched.name),
        }
    }

    pub(crate) fn condition(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    pub(crate) fn is_up(&self) -> bool {
        self.live.load().is_some()
    }

    /// Sends a command, and waits for the answer until then.
    pub(crate) async fn call(&self, command: &Cmd, deadline: Instant) -> Result<Value, Failure> {
        let connection = self.connected(deadline).await?;
        let answer = self.send(&connection, command, deadline).await;
        match &answer {
            Err(Failure::Refused(error)) if Kind::of(error) == Kind::NoScript => {
                match Script::in_full(command) {
                    Some(full) => self.send(&connection, &full, deadline).await,
                    None => answer,
                }
            }
            _ => answer,
        }
    }

    /// Sends a command for a key that this node is about to take over.
    pub(crate) async fn call_asking(
        &self,
        command: &Cmd,
        deadline: Instant,
    ) -> Result<Value, Failure> {
        // The script may be new to it, too. There is no telling within a pipeline.
        let full = Script::in_full(command);
        let mut pipeline = Pipeline::with_capacity(2);
        pipeline.cmd("ASKING").add_command(full.unwrap_or_else(|| command.clone()));
        let mut answers = self.call_all(&pipeline, 2, deadline).await?;
        let answer = answers.pop().ok_or(Failure::Odd("no answer to a command"))?;
        answer.extract_error().map_err(Failure::Refused)
    }

    /// Sends several commands at once.
    pub(crate) async fn call_all(
        &self,
        pipeline: &Pipeline,
        count: usize,
        deadline: Instant,
    ) -> Result<Vec<Value>, Failure> {
        let connection = self.connected(deadline).await?;
        let mut own = connection.connection.clone();
        let had_time = self.has_time(deadline);
        let answers = timeout_at(deadline, own.send_packed_commands(pipeline, 0, count)).await;
        self.take(&connection, answers, had_time)
    }

    async fn send(
        &self,
        connection: &Arc<Live>,
        command: &Cmd,
        deadline: Instant,
    ) -> Result<Value, Failure> {
        let mut own = connection.connection.clone();
        let had_time = self.has_time(deadline);
        let answer = timeout_at(deadline, own.send_packed_command(command)).await;
        // That a server refuses is an answer like others, unless it is made an error.
        let answer = answer.map(|answer| answer.and_then(Value::extract_error));
        self.take(connection, answer, had_time)
    }

    /// Whether a call has enough time left for it to be the server's fault if that is not enough: others may
    /// have used it up.
    fn has_time(&self, deadline: Instant) -> bool {
        deadline.saturating_duration_since(Instant::now()) * 2 >= self.settings.deadline
    }

    /// The connection, at once if there is one or it was lost. While the first is being made, that is
    /// waited for.
    async fn connected(&self, deadline: Instant) -> Result<Arc<Live>, Failure> {
        if let Some(connection) = self.live.load_full() {
            return Ok(connection);
        }
        let mut condition = self.condition.subscribe();
        let settled = condition.wait_for(|condition| *condition != Condition::Starting);
        let reason = match timeout_at(deadline, settled).await {
            Ok(Ok(condition)) => match &*condition {
                Condition::Down(reason) => reason.clone(),
                Condition::Up | Condition::Starting => String::new(),
            },
            _ => "it is being connected to".to_owned(),
        };
        self.live.load_full().ok_or_else(|| {
            self.counters.refused();
            Failure::Down(reason)
        })
    }

    /// Draws the conclusions from an answer, or from there being none in time.
    fn take<A>(
        &self,
        connection: &Arc<Live>,
        answer: Result<redis::RedisResult<A>, tokio::time::error::Elapsed>,
        had_time: bool,
    ) -> Result<A, Failure> {
        match answer {
            Ok(Ok(answer)) => {
                if connection.late.load(Ordering::Relaxed) != 0 {
                    connection.late.store(0, Ordering::Relaxed);
                }
                Ok(answer)
            }
            Ok(Err(error)) => {
                if Kind::of(&error) == Kind::Lost {
                    self.counters.failed();
                    self.lose(connection, &error.to_string());
                }
                Err(Failure::Refused(error))
            }
            Err(_) => {
                self.counters.late();
                if had_time && connection.late.fetch_add(1, Ordering::Relaxed) + 1 >= PATIENCE {
                    self.lose(connection, "it does not answer in time");
                }
                Err(Failure::Late(self.settings.deadline))
            }
        }
    }

    /// Takes the link down, unless there is a new connection already.
    fn lose(&self, connection: &Arc<Live>, reason: &str) {
        let _turning = self.turning.lock();
        let current = self.live.compare_and_swap(connection, None);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            tracing::warn!(server = self.address(), reason, "Redis does not answer");
            self.counters.went_down();
            self.condition.send_replace(Condition::Down(reason.to_owned()));
            self.lost.notify_one();
        }
    }

    /// Makes a new connection.
    async fn restore(&self) {
        let made = self.connect().await;
        let _turning = self.turning.lock();
        match made {
            Ok(connection) => {
                let live = Live { connection, late: AtomicU32::new(0) };
                self.live.store(Some(Arc::new(live)));
                self.counters.came_up();
                if self.condition.send_replace(Condition::Up) != Condition::Starting {
                    tracing::info!(server = self.address(), "Redis answers again");
                }
            }
            Err(reason) => {
                self.counters.went_down();
                self.condition.send_replace(Condition::Down(reason));
            }
        }
    }

    async fn connect(&self) -> Result<MultiplexedConnection, String> {
        let patience = self.settings.connect_timeout;
        let attempt = async {
            let info = match &self.place {
                Place::Known(info) => info.clone(),
                Place::Watched(watched) => sentinel::find(watched, patience).await?,
            };
            *self.found.lock() = Some(info.addr().clone());
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(None)
                .set_response_timeout(None)
                .set_pipeline_buffer_size(QUEUE);
            let client = Client::open(info)?;
            let mut connection =
                client.get_multiplexed_async_connection_with_config(&config).await?;
            if matches!(self.place, Place::Watched(_)) {
                sentinel::confirm(&mut connection).await?;
            }
            // First, because what is wrong is told most clearly then.
            redis::cmd("PING").exec_async(&mut connection).await?;
            for script in script::all() {
                let mut load = redis::cmd("SCRIPT");
                load.arg("LOAD").arg(script.text()).exec_async(&mut connection).await?;
            }
            // One that is too slow for every decision is as good as none.
            let ping = redis::cmd("PING");
            match timeout(self.settings.deadline, ping.exec_async(&mut connection)).await {
                Ok(answer) => answer?,
                Err(_) => {
                    let late = format!("{:?}", self.settings.deadline);
                    let reason = "it is slower than the deadline of every decision";
                    return Err((redis::ErrorKind::Io, reason, late).into());
                }
            }
            Ok::<_, redis::RedisError>(connection)
        };
        match timeout(patience, attempt).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no connection within {patience:?}")),
        }
    }

    /// Asks whether it still answers, and is still the one to ask.
    async fn look(&self) {
        let Some(connection) = self.live.load_full() else { return };
        let patience = self.settings.connect_timeout;
        // What a decision may wait for is no reason to give up.
        let deadline = Instant::now() + patience.max(self.settings.deadline);
        let ping = self.send(&connection, &redis::cmd("PING"), deadline).await;
        if matches!(ping, Err(Failure::Late(_))) {
            self.lose(&connection, "it does not answer in time");
        }
        if let Place::Watched(watched) = &self.place
            && let Ok(Ok(info)) = timeout(patience, sentinel::find(watched, patience)).await
            && self.found.lock().as_ref() != Some(info.addr())
        {
            self.lose(&connection, "another server is master now");
        }
    }
}

/// Connects, and connects again, for as long as there is a link; but not more often than that, even if
/// each connection is made and lost at once.
async fn supervise(link: std::sync::Weak<Link>, lost: Arc<Notify>) {
    let mut tried = Instant::now();
    loop {
        let is_up = match link.upgrade() {
            None => return,
            Some(link) if link.is_up() => {
                tokio::select! {
                    () = link.look() => {}
                    // Others have found out meanwhile.
                    () = lost.notified() => {}
                }
                link.is_up()
            }
            Some(link) => {
                tried = Instant::now();
                link.restore().await;
                link.is_up()
            }
        };
        if is_up {
            tokio::select! {
                () = lost.notified() => sleep_until(tried + PROBE_EVERY).await,
                () = sleep(LOOK_EVERY) => {}
            }
        } else {
            sleep_until(tried + PROBE_EVERY).await;
        }
    }
}
