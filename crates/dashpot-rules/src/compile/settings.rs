//! The tables that are about no rule: stores, servers, headers.

use std::time::Duration;

use super::{Compiler, MINUTE, list, set, value};
use crate::config::{
    HeadersSection, MemorySection, ProxySection, ServeSection, StoreSection, StyleText,
};
use crate::set::{MemorySettings, ServeSettings, StoreSettings};
use crate::source::Written;
use crate::{AccessLog, HeaderStyle, Headers, ProxySettings};

impl Compiler<'_> {
    pub(super) fn store(&mut self, section: Option<&Written<StoreSection>>) -> StoreSettings {
        const SCHEMES: [&str; 6] = [
            "redis",
            "rediss",
            "redis-cluster",
            "rediss-cluster",
            "redis-sentinel",
            "rediss-sentinel",
        ];
        let mut settings = StoreSettings::default();
        let Some(Written { value: section, .. }) = section else { return settings };
        for url in list(section.url.as_ref()) {
            let scheme = url.value.split_once("://").map(|(scheme, _)| scheme);
            if !scheme.is_some_and(|scheme| SCHEMES.contains(&scheme)) {
                let message = "a store is a redis://, rediss://, redis-cluster:// or \
                               redis-sentinel:// URL";
                // It may hold a password.
                self.problems.error(&url.span, message).hide();
            }
            settings.urls.push(url.value.clone());
        }
        if let Some(prefix) = &section.prefix {
            let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '{' | '}');
            if !(1..=64).contains(&prefix.value.len()) || !prefix.value.chars().all(is_plain) {
                self.error(&prefix.span, "a prefix has 1 to 64 printable characters, no braces");
            }
            settings.prefix.clone_from(&prefix.value);
        }
        if let Some(deadline) = section.deadline.as_ref().filter(|one| one.value.is_zero()) {
            self.error(&deadline.span, "no store answers in no time");
        }
        set(&mut settings.deadline, section.deadline.as_ref());
        set(&mut settings.on_error, section.on_error.as_ref());
        self.between(section.lease.as_ref(), "a lease", [Duration::from_millis(100), MINUTE]);
        set(&mut settings.lease, section.lease.as_ref());
        self.between(
            section.reconcile.as_ref(),
            "an interval",
            [Duration::from_millis(10), MINUTE],
        );
        set(&mut settings.reconcile, section.reconcile.as_ref());
        settings
    }

    pub(super) fn memory(&mut self, section: Option<&Written<MemorySection>>) -> MemorySettings {
        let mut settings = MemorySettings::default();
        let Some(Written { value: section, .. }) = section else { return settings };
        if let Some(max_keys) = &section.max_keys {
            if max_keys.value == 0 {
                self.error(&max_keys.span, "a store that remembers no key cannot limit anybody");
            }
            settings.max_keys = usize::try_from(max_keys.value).ok();
        }
        settings.state_file = section.state_file.as_ref().map(|file| self.path(&file.value));
        settings
    }

    pub(super) fn serve(&mut self, section: Option<&Written<ServeSection>>) -> ServeSettings {
        let mut settings = ServeSettings::default();
        let Some(Written { value: section, .. }) = section else { return settings };
        settings.listen = value(&section.listen);
        settings.grpc_listen = value(&section.grpc_listen);
        settings.resp_listen = value(&section.resp_listen);
        let path = |file: &Option<Written<String>>| Some(self.path(&file.as_ref()?.value));
        settings.tls_certificate = path(&section.tls_certificate);
        settings.tls_key = path(&section.tls_key);
        settings.resp_password_file = path(&section.resp_password_file);
        settings.admin_token_file = path(&section.admin_token_file);
        self.pair(section.tls_certificate.as_ref(), section.tls_key.as_ref());
        settings
    }

    pub(super) fn proxy(&mut self, section: Option<&Written<ProxySection>>) -> ProxySettings {
        let Some(Written { value: section, .. }) = section else { return ProxySettings::default() };
        self.pair(section.tls_certificate.as_ref(), section.tls_key.as_ref());
        let path = |file: &Option<Written<String>>| Some(self.path(&file.as_ref()?.value));
        let log = section.access_log.as_ref().map(|log| match &log.value {
            AccessLog::File(file) => AccessLog::File(self.directory.join(file)),
            other => other.clone(),
        });
        ProxySettings {
            listen: value(&section.listen),
            upstream: value(&section.upstream),
            admin_listen: value(&section.admin_listen),
            tls_certificate: path(&section.tls_certificate),
            tls_key: path(&section.tls_key),
            connect_timeout: value(&section.connect_timeout),
            response_timeout: value(&section.response_timeout),
            client_timeout: value(&section.client_timeout),
            idle_timeout: value(&section.idle_timeout),
            tunnel_timeout: value(&section.tunnel_timeout),
            max_body: value(&section.max_body),
            access_log: log,
        }
    }

    /// A certificate and its key go together.
    fn pair(&mut self, certificate: Option<&Written<String>>, key: Option<&Written<String>>) {
        match (certificate, key) {
            (Some(one), None) => self.error(&one.span, "a certificate needs its `tls_key`"),
            (None, Some(one)) => self.error(&one.span, "a key needs its `tls_certificate`"),
            _ => {}
        }
    }

    pub(super) fn headers(&mut self, section: Option<&Written<HeadersSection>>) -> Headers {
        let mut headers = Headers::default();
        let Some(Written { value: section, .. }) = section else { return headers };
        if section.styles.is_some() {
            headers.styles = self.styles(list(section.styles.as_ref()));
        }
        set(&mut headers.jitter, section.jitter.as_ref());
        set(&mut headers.expose, section.expose.as_ref());
        headers
    }

    fn styles(&mut self, written: &[Written<StyleText>]) -> Vec<HeaderStyle> {
        let mut styles = Vec::new();
        for style in written {
            match style.value.0 {
                None if written.len() > 1 => {
                    self.error(&style.span, "`none` goes with no other style");
                }
                None => {}
                Some(new) => {
                    let clash = |known: &&HeaderStyle| known.shares_fields_with(new);
                    if let Some(known) = styles.iter().find(clash) {
                        let message = format!(
                            "`{}` and `{}` write the same fields; choose one",
                            known.name(),
                            new.name()
                        );
                        self.error(&style.span, message);
                    }
                    styles.push(new);
                }
            }
        }
        styles
    }
}
