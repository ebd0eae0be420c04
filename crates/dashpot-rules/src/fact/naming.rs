//! Which names are those of secrets.

/// Words that are a secret, wherever they stand in a name.
const WORDS: [&str; 20] = [
    "auth",
    "authentication",
    "authorization",
    "bearer",
    "cookies",
    "jwt",
    "key",
    "keys",
    "otp",
    "pass",
    "passcode",
    "passwords",
    "pin",
    "pwd",
    "secrets",
    "sess",
    "sessions",
    "sid",
    "sig",
    "signatures",
];

/// What words for secrets end in, also those that are written as one: `accesstoken`, `sessionid`.
const ENDS: [&str; 18] = [
    "accesskey",
    "apikey",
    "authkey",
    "cookie",
    "credential",
    "credentials",
    "licensekey",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "secretkey",
    "sessid",
    "session",
    "sessionid",
    "signature",
    "token",
];

/// Whether a name is that of a secret, by its words: `x-api-key` is, `x-monkey` is not.
pub(super) fn is_secret(name: &str) -> bool {
    words(name).any(|word| {
        WORDS.iter().any(|secret| word.eq_ignore_ascii_case(secret))
            || ENDS.iter().any(|end| ends_with(word, end))
    })
}

/// The words of a name, which begin after a sign or with a capital: `api-key`, `api_key`, `apiKey`.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    parts.flat_map(|mut rest| {
        std::iter::from_fn(move || {
            let mut pairs = rest.bytes().zip(rest.bytes().skip(1));
            let end = pairs.position(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase());
            let (word, after) = rest.split_at_checked(end.map_or(rest.len(), |at| at + 1))?;
            rest = after;
            (!word.is_empty()).then_some(word)
        })
    })
}

fn ends_with(word: &str, end: &str) -> bool {
    let start = word.len().checked_sub(end.len());
    start.and_then(|start| word.get(start..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_whole_words() {
        for name in [
            "api-key",
            "apikey",
            "apiKey",
            "API_KEY",
            "x-api-key",
            "xapikey",
            "key",
            "sessionid",
            "PHPSESSID",
            "session.id",
            "access_token",
            "accessToken",
            "accesstoken",
            "x-auth-token",
            "csrftoken",
            "authorization",
            "proxy-authorization",
            "password",
            "newPassword",
            "user[password]",
            "passwd",
            "client_secret",
            "x-hub-signature-256",
            "credentials",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "",
            "-",
            "x-monkey",
            "turkey",
            "keyboard",
            "author",
            "authority",
            "x-author-id",
            "passenger",
            "compass",
            "bypass",
            "secretary",
            "max_tokens",
            "user-agent",
            "email",
            "page",
            "x-request-id",
            "spin",
            "größe",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
