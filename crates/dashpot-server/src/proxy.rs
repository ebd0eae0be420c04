//! `dashpot proxy`: a gateway in front of any backend.

mod access_log;
mod answer;
mod bell;
mod body;
mod connection;
mod download;
mod failure;
mod forward;
mod gateway;
mod headers;
mod link;
mod progress;
mod settings;
mod stream;
mod tunnel;
mod upload;

use dashpot_rules::Listen;

use crate::Exit;
use crate::serve::common::Failure;
use crate::serve::connection::Protocol;
use crate::serve::envoy::LiveLimits;
use crate::serve::resp::Resp;
use crate::serve::{Prepared, Told, bind, run_until_told, run_with};

pub(crate) use access_log::Log;
pub(crate) use connection::serve;
pub(crate) use gateway::{Gateway, Settings};
pub(crate) use link::Pool;
pub(crate) use settings::Args;

pub(crate) fn run(args: &Args) -> Exit {
    run_with(&args.common, proxy(args))
}

async fn proxy(args: &Args) -> Result<(), Failure> {
    let told = Told::default();
    let (rules, file, watch) = args.rules(told.of_reloads())?;
    let set = rules.current();
    let settings = args.settings(&set)?;
    let tls = args.tls(&set)?;
    // First, so that nothing is changed on disk if somebody else serves here.
    let mut door = bind(args.listen(&set), Protocol::Proxy, "choose another with --listen")?;
    door.is_secure = tls.is_some();
    let mut doors = vec![door];
    if let Listen::At(address) = args.admin_listen(&set) {
        let fix = "choose another with --admin-listen, or do without: --admin-listen off";
        doors.push(bind(address, Protocol::Http, fix)?);
    }
    let log = Log::open(&args.access_log(&set), args.common.log_format)?;
    let envoy = LiveLimits::none(&set).map_err(|problems| Failure::usage(problems.to_string()))?;
    let resp = Resp::new(None);
    let proxy = Some((settings, log));
    let prepared = Prepared { told, rules, file, watch, envoy, resp, doors, tls, proxy };
    run_until_told(&args.common, prepared).await
}
