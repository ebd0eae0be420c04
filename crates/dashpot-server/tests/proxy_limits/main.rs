//! Limiting as the gateway does it: the real `dashpot proxy` in front of backends that note what reaches them, and
//! when; beside nginx, where that promises the same.

mod backend;
mod caller;
mod crowd;
mod home;
mod nginx;
mod pace;
#[path = "../gateways/page.rs"]
mod page;
mod proxy;
#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "../support/tools.rs"]
mod tools;

mod access_log;
mod admin;
mod beside_nginx;
mod beside_nginx_keys;
mod by_answer;
mod bytes;
mod denials;
mod fields;
mod forged;
mod forged_lines;
mod hanging_up;
mod hanging_up_anyhow;
mod http2;
mod http2_answers;
mod leased;
mod metrics;
mod one_line;
mod overload;
mod pages;
mod permits;
mod polite;
mod queues;
mod rules;
mod settings;
mod shared;
mod state;
mod stress;
mod unread_log;
mod weights;
