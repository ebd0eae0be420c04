//! Advice on whom to believe.

use ipnet::IpNet;

use super::Case;
use crate::Fact;
use crate::identity::Trust;
use crate::problem::Problems;
use crate::read::{List, Map};
use crate::source::Written;

pub(super) fn nobody_is_believed(case: &Case<'_>, problems: &mut Problems) {
    let identity = &case.set.identity;
    let Some(section) = &case.config.identity else { return };
    if identity.trust != Trust::Nobody {
        return;
    }
    for written in [&section.value.user, &section.value.tier, &section.value.api_key] {
        let Some(written) = written else { continue };
        let by_key = !identity.keys.is_empty();
        if !by_key && !matches!(written.value, Fact::Jwt(_)) {
            let message = format!(
                "`{}` is believed only from a trusted proxy, and there is none",
                written.value
            );
            let hint = "name your proxies in trusted_proxies, or use api_keys_file or jwt:…";
            problems.advise(&written.span, message).hint(hint);
        }
    }
}

pub(super) fn everybody_is_believed(case: &Case<'_>, problems: &mut Problems) {
    let Trust::Proxies(networks) = &case.set.identity.trust else { return };
    let written = case.config.identity.as_ref();
    let Some(written) = written.and_then(|section| section.value.trusted_proxies.as_ref()) else {
        return;
    };
    if IpNet::aggregate(networks).iter().any(|network| network.prefix_len() == 0) {
        let message = "everybody is believed, so a caller can claim any address and any user";
        let hint = "name the networks of your proxies only, or how many there are: hops = 1";
        problems.advise(&written.span, message).hint(hint);
    }
}

pub(super) fn lists_of_the_callers_choice(case: &Case<'_>, problems: &mut Problems) {
    let names = |list: &'_ Option<Written<Map<List<String>>>>| -> Vec<Written<String>> {
        list.iter().flat_map(|map| &map.value.0).map(|(name, _)| name.clone()).collect()
    };
    for name in names(&case.config.allow) {
        if name.value.parse::<Fact>().is_ok_and(|fact| fact.is_callers_choice()) {
            let message = format!("a caller can choose `{}`, and so not to be limited", name.value);
            problems.advise(&name.span, message).hint("allow by ip, user or api_key");
        }
    }
    for name in names(&case.config.block) {
        if name.value.parse::<Fact>().is_ok_and(|fact| fact.is_in_body()) {
            let message = "a body can be made too long to be looked into, and so this be avoided";
            problems.advise(&name.span, message).hint("block by ip, user or api_key");
        }
    }
}
