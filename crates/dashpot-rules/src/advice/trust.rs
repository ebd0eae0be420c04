//! Advice on whom to believe.

use ipnet::IpNet;

use super::Case;
use crate::Fact;
use crate::identity::Trust;
use crate::problem::Problems;

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
