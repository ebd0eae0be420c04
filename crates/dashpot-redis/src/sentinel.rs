//! Whom sentinels say to be the master.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, ErrorKind, RedisError, RedisResult};
use tokio::time::timeout;

use crate::target::{Watched, at};

/// The master's place, by the first sentinel that knows.
pub(crate) async fn find(watched: &Watched, patience: Duration) -> RedisResult<ConnectionInfo> {
    let mut reason: RedisError = (ErrorKind::Io, "no sentinel answers").into();
    // One that hangs must not take all the time there is.
    let share = patience / u32::try_from(watched.sentinels.len()).unwrap_or(1).max(1);
    for sentinel in &watched.sentinels {
        match timeout(share, ask(sentinel, &watched.name)).await {
            Ok(Ok((host, port))) => return Ok(at(&watched.master, &host, port)),
            Ok(Err(error)) => reason = error,
            Err(_) => {}
        }
    }
    Err(reason)
}

async fn ask(sentinel: &ConnectionInfo, name: &str) -> RedisResult<(String, u16)> {
    let config = AsyncConnectionConfig::new().set_connection_timeout(None);
    let client = Client::open(sentinel.clone())?;
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    let mut question = redis::cmd("SENTINEL");
    question.arg("get-master-addr-by-name").arg(name);
    let answer: Option<(String, u16)> = question.query_async(&mut connection).await?;
    answer.ok_or_else(|| {
        let kind = ErrorKind::MasterNameNotFoundBySentinel;
        (kind, "the sentinels know no such master", name.to_owned()).into()
    })
}

/// Makes sure that a server takes itself for a master, too.
pub(crate) async fn confirm(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    let role: Vec<redis::Value> = redis::cmd("ROLE").query_async(connection).await?;
    match role.first() {
        Some(redis::Value::BulkString(role)) if role == b"master" => Ok(()),
        _ => Err((ErrorKind::Io, "the server that sentinels name is not a master yet").into()),
    }
}
