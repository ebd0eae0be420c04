//! Secrets go nowhere.

use dashpot_rules::{Fact, Facts, RuleSet};
use proptest::prelude::*;

use super::keys;

const RULES: &str = "
[identity]
default_tier = 'free'

[[priority]]
name = 'internal'
match.header.x-internal-token = 'SEEKRIT-priority'
weight = 2

[[rule]]
name = 'by-key'
by = ['api_key']
tiers.free = ['5/s']

[[rule]]
name = 'by-cookie'
by = ['cookie:sid | cookie:other']
limits = '5/s'

[[rule]]
name = 'by-header'
by = ['header:authorization', 'header:x-api-key', 'query:token', 'query:access_token']
limits = '5/s'

[[rule]]
name = 'by-body'
by = ['json:password', 'form:secret', 'header:x-session-id']
limits = '5/s'

[[rule]]
name = 'reset'
match.path = '/reset/{token}'
by = ['param:token']
limits = '5/s'
";

fn request(secret: &str) -> Facts {
    let texts = [
        "cookie:sid",
        "header:authorization",
        "header:x-api-key",
        "query:token",
        "query:access_token",
        "json:password",
        "form:secret",
        "header:x-session-id",
        "header:x-internal-token",
    ];
    let facts = Facts::new().api_key(secret).with(Fact::Path, format!("/reset/{secret}"));
    texts.iter().fold(facts, |facts, text| facts.with(text.parse().unwrap(), secret))
}

fn contains(text: &[u8], secret: &str) -> bool {
    text.windows(secret.len()).any(|window| window == secret.as_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_secret_is_in_no_key_and_no_explanation(secret in "[a-zA-Z0-9_-]{8,200}") {
        let rules = RuleSet::parse(RULES).unwrap();
        let request = request(&secret);
        let all = keys(&rules, &request);
        prop_assert_eq!(all.len(), 5);
        for key in all {
            prop_assert!(!contains(&key, &secret));
        }
        let explained = rules.explain(&request);
        prop_assert!(!explained.to_string().contains(&secret), "{}", explained);
        let debugged = format!("{explained:?}");
        prop_assert!(!debugged.contains(&secret), "{}", debugged);
    }

    #[test]
    fn two_secrets_are_two_callers(one in "[a-z]{1,9}", two in "[a-z]{1,9}") {
        let rules = RuleSet::parse(RULES).unwrap();
        let same = keys(&rules, &request(&one)) == keys(&rules, &request(&two));
        prop_assert_eq!(same, one == two);
    }
}

#[test]
fn a_secret_that_a_rule_asks_for_is_not_told() {
    let file = "[[rule]]\nname = 'r'\nmatch.header.x-internal-token = 'hunter2'\nlimits = '5/s'";
    let rules = RuleSet::parse(file).unwrap();
    let request = Facts::new().with("header:x-internal-token".parse().unwrap(), "hunter2");
    let explained = rules.explain(&request);
    assert_eq!(explained.rules.len(), 1);
    assert!(!explained.to_string().contains("hunter2"), "{explained}");
    let other = RuleSet::parse(&file.replace("hunter2", "hunter3")).unwrap();
    let diff = dashpot_rules::diff(&rules, &other);
    assert_eq!(diff.len(), 1, "that it is another one is told");
    assert!(!diff[0].contains("hunter"), "{diff:?}");
}

#[test]
fn debugging_tells_no_secret() {
    let rules = RuleSet::parse(
        "[store]\nurl = 'redis://:hunter2@a'\n\
         [[rule]]\nname = 'r'\nmatch.header.x-internal-token = 'hunter2'\nlimits = '5/s'",
    )
    .unwrap();
    assert!(!format!("{rules:?}").contains("hunter2"));
    assert!(!format!("{:?}", rules.store()).contains("hunter2"));
}
