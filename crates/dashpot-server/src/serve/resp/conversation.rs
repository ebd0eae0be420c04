//! What one client says, and is answered.

use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dashpot_resp::{Next, ProtocolError, Session};
use futures_util::Stream;
use futures_util::stream::FuturesOrdered;
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::desk::{Desk, at_desk};
use super::throttle::{Far, decide_at_once, fits};
use crate::serve::connection::Worker;
use crate::serve::metrics::Door;

/// How long a client may be without a command.
const QUIET: Duration = Duration::from_secs(600);

/// How long half a command may lie around, and how long it may take to say the password.
const HALF: Duration = Duration::from_secs(10);

/// How long nobody may read what is answered.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// How many bytes of answers may be unread.
const UNREAD_MAX: usize = 256 * 1024;

/// How many questions to a far store may be on their way.
const AWAITED_MAX: usize = 128;

/// How a conversation came to its end.
pub(super) enum End {
    /// We have said the last word, and the client may still be talking.
    Said,
    /// There is nothing more to hear.
    Over,
    /// It is not worth another word.
    Cut(&'static str),
}

/// Answers on their way from a far store, in the order of the questions.
type Awaited = FuturesOrdered<Pin<Box<dyn Future<Output = Vec<u8>> + Send>>>;

/// What is about something on its way from a far store.
struct After {
    key: Box<[u8]>,
    said: Vec<u8>,
}

/// What one client says, and is answered.
pub(super) struct Conversation<'w> {
    worker: &'w Arc<Worker>,
    session: Session,
    /// What has been read and not been understood: half a command, or what there was no room to answer.
    received: Vec<u8>,
    /// Whether there may be whole commands in that.
    is_behind: bool,
    /// Answers that could not be written yet, and how many bytes of them could.
    unwritten: Vec<u8>,
    written: usize,
    /// Whether all that is written has been sent, too.
    is_flushed: bool,
    awaited: Awaited,
    /// What each of those is about, and what is to be said after it.
    after: VecDeque<After>,
    /// How many bytes that is in all.
    after_bytes: usize,
    /// The key that has to be heard of before anything else is asked about it.
    in_turn: Option<Box<[u8]>>,
    /// How it will end when all is said.
    ending: Option<End>,
    /// Whether we are about to close.
    is_told: bool,
    /// When it was last known who it is, or when it came.
    known_at: Instant,
    /// When the last command came, when half of one did, and since when nobody has read any answer that is there.
    last_command: Instant,
    half_since: Instant,
    unread_since: Option<Instant>,
    /// When to look next whether it takes too long.
    look: Pin<Box<Sleep>>,
}

impl<'w> Conversation<'w> {
    pub(super) fn new(worker: &'w Arc<Worker>, number: u64) -> Self {
        let now = Instant::now();
        Self {
            worker,
            session: Session::new(number, &*worker.service),
            received: Vec::new(),
            is_behind: false,
            unwritten: Vec::new(),
            written: 0,
            is_flushed: true,
            awaited: FuturesOrdered::new(),
            after: VecDeque::new(),
            after_bytes: 0,
            in_turn: None,
            ending: None,
            is_told: false,
            known_at: now,
            last_command: now,
            half_since: now,
            unread_since: None,
            look: Box::pin(sleep_until(now + HALF)),
        }
    }

    /// Goes on as far as it can, until it ends.
    pub(super) fn poll(
        &mut self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        told: Pin<&mut impl Future>,
        context: &mut Context<'_>,
    ) -> Poll<End> {
        let mut talk = |conversation: &mut Self, context: &mut Context<'_>| {
            at_desk(|desk| conversation.talk(desk, stream, context))
        };
        if let Poll::Ready(end) = talk(self, context) {
            return Poll::Ready(end);
        }
        if !self.is_told && told.poll(context).is_ready() {
            // What has been read is answered.
            self.is_told = true;
            if let Poll::Ready(end) = talk(self, context) {
                return Poll::Ready(end);
            }
        }
        self.watch(context).map(End::Cut)
    }

    /// Reads and answers, until there is nothing to read, or nobody reads.
    fn talk(
        &mut self,
        desk: &mut Desk,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<End> {
        loop {
            self.gather(desk, context);
            if self.write(desk, stream, context).is_err() {
                return Poll::Ready(End::Over);
            }
            if self.is_done()
                && let Some(end) = self.ending.take()
            {
                return Poll::Ready(end);
            }
            if self.ending.is_some() || self.is_full(desk) {
                return Poll::Pending;
            }
            if self.is_behind {
                self.answer_received(desk);
                continue;
            }
            if self.is_told {
                // There may be more, which nobody reads.
                self.ending = Some(End::Said);
                continue;
            }
            let mut buffer = ReadBuf::new(&mut desk.input);
            match ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer)) {
                Err(_) => return Poll::Ready(End::Over),
                Ok(()) => match buffer.filled() {
                    [] => self.ending = Some(End::Over),
                    filled if self.received.is_empty() => {
                        let count = filled.len();
                        let input = mem::take(&mut desk.input);
                        let fresh = input.get(..count).unwrap_or_default();
                        let answered = self.answer(desk, fresh);
                        if answered < count {
                            self.half_since = self.last_command;
                            self.received = fresh.get(answered..).unwrap_or_default().to_vec();
                        }
                        desk.input = input;
                    }
                    filled => {
                        self.received.extend_from_slice(filled);
                        self.answer_received(desk);
                    }
                },
            }
        }
    }

    /// Answers what was left over, and what has been added to it.
    fn answer_received(&mut self, desk: &mut Desk) {
        let mut received = mem::take(&mut self.received);
        let answered = self.answer(desk, &received);
        if answered > 0 {
            self.half_since = self.last_command;
        }
        if answered < received.len() {
            received.drain(..answered);
            // What is left may be small, and need not take the place of what was large.
            received.shrink_to(received.len() * 2);
            self.received = received;
        }
    }

    /// Whether there is nothing left to say.
    fn is_done(&self) -> bool {
        self.unwritten.is_empty() && self.awaited.is_empty() && self.is_flushed
    }

    /// Whether more commands have to wait.
    fn is_full(&self, desk: &Desk) -> bool {
        let unread = self.unwritten.len() - self.written + desk.output.len();
        unread + self.after_bytes >= UNREAD_MAX
            || self.awaited.len() >= AWAITED_MAX
            || self.in_turn.as_ref().is_some_and(|key| self.is_awaited(key))
    }

    /// Whether something on its way is about this key. What is asked about one key is asked in turn; what is on its
    /// way may arrive in any order.
    fn is_awaited(&self, key: &[u8]) -> bool {
        self.after.iter().any(|after| *after.key == *key)
    }

    /// Answers the commands that are there, and says where they end.
    fn answer(&mut self, desk: &mut Desk, input: &[u8]) -> usize {
        let began = Instant::now();
        self.worker.lively.stir();
        self.last_command = began;
        if self.session.is_known() {
            self.known_at = began;
        }
        let (mut at, mut counts) = (0, Counts::default());
        self.is_behind = false;
        self.in_turn = None;
        loop {
            if self.is_full(desk) {
                self.is_behind = true;
                break;
            }
            let Some(rest) = input.get(at..).filter(|rest| !rest.is_empty()) else { break };
            let before = self.after.back().map_or(0, |after| after.said.len());
            let answered = self.answer_next(desk, rest, began, &mut counts);
            // A new one begins with nothing.
            let said = self.after.back().map_or(0, |after| after.said.len());
            self.after_bytes += said.saturating_sub(before);
            match answered {
                Ok(0) => {
                    self.is_behind = self.in_turn.is_some();
                    break;
                }
                Ok(length) => at += length,
                Err(error) => {
                    Session::refuse(error, place(&mut self.after, &mut desk.output));
                    let end = if error == ProtocolError::Http {
                        End::Cut("a browser was sent here")
                    } else {
                        End::Said
                    };
                    self.ending = Some(end);
                    counts.wrong += 1;
                }
            }
            if self.ending.is_some() {
                break;
            }
        }
        self.count(&counts, began.elapsed());
        // After the end nothing is answered.
        if self.ending.is_some() { input.len() } else { at }
    }

    /// Answers the next command, and says how long it was; 0 if it is not all there.
    #[inline]
    fn answer_next(
        &mut self,
        desk: &mut Desk,
        input: &[u8],
        began: Instant,
        counts: &mut Counts,
    ) -> Result<usize, ProtocolError> {
        let Desk { reader, output, policies, .. } = desk;
        let Some((request, length)) = reader.read(input, self.session.limits())? else {
            return Ok(0);
        };
        if request.is_empty() {
            return Ok(length);
        }
        let worker = self.worker;
        let service = &*worker.service;
        let out = place(&mut self.after, output);
        let said = out.len();
        let asked = match self.session.answer(request, service, out) {
            Next::Go => {
                let is_wrong = out.get(said) == Some(&b'-');
                *if is_wrong { &mut counts.wrong } else { &mut counts.other } += 1;
                return Ok(length);
            }
            Next::End => {
                counts.other += 1;
                self.ending = Some(End::Said);
                return Ok(length);
            }
            Next::Throttle(asked) => asked,
        };
        let policy = match policies.get(&asked.terms, |policy| fits(service, policy)) {
            Ok(policy) => policy,
            Err(wrong) => {
                wrong.answer(out);
                counts.wrong += 1;
                return Ok(length);
            }
        };
        if self.is_awaited(asked.key.as_bytes()) {
            self.in_turn = Some(asked.key.as_bytes().into());
            return Ok(0);
        }
        let out = place(&mut self.after, output);
        match decide_at_once(service, &asked, policy, out) {
            Some(StatusCode::OK) => counts.allowed += 1,
            Some(StatusCode::TOO_MANY_REQUESTS) => counts.denied += 1,
            Some(_) => counts.unavailable += 1,
            None => {
                let key: Box<[u8]> = asked.key.as_bytes().into();
                let far = Far {
                    terms: asked.terms,
                    key: key.clone(),
                    quantity: asked.quantity,
                    policy: policy.clone(),
                    began: began.into_std(),
                };
                let worker = worker.clone();
                self.awaited.push_back(Box::pin(async move { far.decide(&worker).await }));
                self.after.push_back(After { key, said: Vec::new() });
            }
        }
        Ok(length)
    }

    /// Takes the answers that have come from a far store.
    fn gather(&mut self, desk: &mut Desk, context: &mut Context<'_>) {
        while !self.awaited.is_empty() {
            let Poll::Ready(Some(answer)) = Pin::new(&mut self.awaited).poll_next(context) else {
                return;
            };
            desk.output.extend_from_slice(&answer);
            if let Some(After { said, .. }) = self.after.pop_front() {
                desk.output.extend_from_slice(&said);
                self.after_bytes = self.after_bytes.saturating_sub(said.len());
            }
        }
    }

    /// Writes as much as can be written; the rest is kept. Fails if nobody is there.
    fn write(
        &mut self,
        desk: &mut Desk,
        stream: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
    ) -> Result<(), ()> {
        let mut stream = Pin::new(stream);
        while let Some(rest) = self.unwritten.get(self.written..).filter(|it| !it.is_empty()) {
            match stream.as_mut().poll_write(context, rest) {
                Poll::Ready(Ok(count @ 1..)) => self.note_written(count),
                Poll::Ready(_) => return Err(()),
                Poll::Pending => {
                    self.unwritten.extend_from_slice(&desk.output);
                    desk.output.clear();
                    return Ok(());
                }
            }
        }
        // All that was left is written.
        (self.unwritten, self.written) = (Vec::new(), 0);
        let mut at = 0;
        while let Some(rest) = desk.output.get(at..).filter(|rest| !rest.is_empty()) {
            match stream.as_mut().poll_write(context, rest) {
                Poll::Ready(Ok(count @ 1..)) => {
                    at += count;
                    self.is_flushed = false;
                }
                Poll::Ready(_) => return Err(()),
                Poll::Pending => {
                    self.unwritten.extend_from_slice(rest);
                    break;
                }
            }
        }
        desk.output.clear();
        if !self.is_flushed {
            match stream.as_mut().poll_flush(context) {
                Poll::Ready(flushed) => {
                    flushed.map_err(drop)?;
                    self.is_flushed = true;
                }
                Poll::Pending => {}
            }
        }
        if self.unwritten.is_empty() && self.is_flushed {
            self.unread_since = None;
        } else {
            self.unread_since.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    fn note_written(&mut self, count: usize) {
        self.written += count;
        self.is_flushed = false;
        self.unread_since = Some(Instant::now());
        // So that what has been said does not take the place of what has not.
        if self.written >= UNREAD_MAX {
            self.unwritten.drain(..self.written);
            self.written = 0;
        }
    }

    /// Looks whether it takes too long. A timer that is set for each command would take longer than the command.
    fn watch(&mut self, context: &mut Context<'_>) -> Poll<&'static str> {
        loop {
            let (due, why) = self.due();
            // It is later than it was set for, mostly; sooner only if somebody has stopped in the middle.
            if due < self.look.deadline() {
                self.look.as_mut().reset(due);
            }
            ready!(self.look.as_mut().poll(context));
            let now = Instant::now();
            if due <= now {
                return Poll::Ready(why);
            }
            self.look.as_mut().reset(due);
        }
    }

    /// When it will have taken too long, and what.
    fn due(&self) -> (Instant, &'static str) {
        let is_half = !self.received.is_empty() && !self.is_behind;
        let mut due = (self.last_command + QUIET, "nothing was said for long");
        let mut or = |since: Option<Instant>, patience, why| {
            if let Some(at) = since.map(|since| since + patience).filter(|at| *at < due.0) {
                due = (at, why);
            }
        };
        or(self.unread_since, PATIENCE, "nobody reads the answers");
        or(is_half.then_some(self.half_since), HALF, "half a command, and no more in time");
        let is_stranger = !self.session.is_known();
        or(is_stranger.then_some(self.known_at), HALF, "no password in time");
        due
    }

    fn count(&self, counts: &Counts, took: Duration) {
        let Some(answered) = self.worker.service.answered.get(self.worker.number) else { return };
        for (status, many) in [
            (StatusCode::OK, counts.allowed + counts.other),
            (StatusCode::TOO_MANY_REQUESTS, counts.denied + counts.wrong),
            (StatusCode::SERVICE_UNAVAILABLE, counts.unavailable),
        ] {
            if many > 0 {
                answered.count_many(Door::Resp, status, took, many);
            }
        }
    }
}

/// Where to say something: after what is waited for, if there is any.
fn place<'o>(after: &'o mut VecDeque<After>, output: &'o mut Vec<u8>) -> &'o mut Vec<u8> {
    after.back_mut().map_or(output, |after| &mut after.said)
}

/// What came of the commands that were answered together.
#[derive(Debug, Default)]
struct Counts {
    allowed: u64,
    denied: u64,
    other: u64,
    wrong: u64,
    unavailable: u64,
}
