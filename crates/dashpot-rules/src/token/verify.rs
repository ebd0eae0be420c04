//! Checking tokens.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dashpot::Timestamp;
use jsonwebtoken::crypto::aws_lc;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Validation};
use serde_json::{Map, Value};

use super::{Claims, TokenError, TokenRefusal, TokenSettings};

/// As long as what HS256 makes of it, as RFC 7518 asks.
const SECRET_MIN: usize = 32;
/// As much as a modulus of 2048 bits. The library refuses shorter ones, but only with each token.
const RSA_MIN: usize = 256;
const LEEWAY_MAX: Duration = Duration::from_secs(3600);

/// Checks tokens: whether they are signed with the one key and the one algorithm that were agreed
/// on, and are good now, from the issuer and for the audience that were asked for.
///
/// A token without `exp` is refused: it would be good for ever. Cheap to clone.
#[derive(Clone)]
pub struct Tokens(Arc<Inner>);

struct Inner {
    key: DecodingKey,
    /// All but the times, which are checked here: the library knows only its own clock.
    validation: Validation,
    leeway: Duration,
}

impl Tokens {
    /// Checks tokens as told.
    ///
    /// # Errors
    ///
    /// If the algorithm is unknown, or the key is not one for it.
    pub fn new(settings: &TokenSettings) -> Result<Self, TokenError> {
        let unknown = |_| TokenError::Algorithm(settings.algorithm.clone());
        let algorithm: Algorithm = settings.algorithm.parse().map_err(unknown)?;
        let key = match algorithm.family() {
            AlgorithmFamily::Hmac => secret(settings)?,
            _ => public_key(settings, algorithm)?,
        };
        if settings.leeway > LEEWAY_MAX {
            return Err(TokenError::Leeway(settings.leeway));
        }
        // The library picks its cryptography by its features, and panics if another crate turned
        // on both. Where somebody chose already, the choice stands.
        let _ = aws_lc::DEFAULT_PROVIDER.install_default();

        let mut validation = Validation::new(algorithm);
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = settings.audience.is_some();
        validation.required_spec_claims = HashSet::new();
        // What is asked for has to be there; the library lets pass what is not.
        if let Some(issuer) = &settings.issuer {
            validation.set_issuer(&[issuer]);
            validation.required_spec_claims.insert("iss".to_owned());
        }
        if let Some(audience) = &settings.audience {
            validation.set_audience(&[audience]);
            validation.required_spec_claims.insert("aud".to_owned());
        }
        Ok(Self(Arc::new(Inner { key, validation, leeway: settings.leeway })))
    }

    /// What a token says, if it is good now.
    ///
    /// # Errors
    ///
    /// Why it is not believed.
    pub fn claims(&self, token: &str) -> Result<Claims, TokenRefusal> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.claims_at(token, Timestamp::EPOCH.after(since))
    }

    /// What a token says, if it is good at this moment.
    ///
    /// # Errors
    ///
    /// Why it is not believed.
    pub fn claims_at(&self, token: &str, now: Timestamp) -> Result<Claims, TokenRefusal> {
        let Inner { key, validation, leeway } = &*self.0;
        let decoded = jsonwebtoken::decode::<Map<String, Value>>(token, key, validation);
        let decoded = decoded.map_err(|error| refusal(&error, token))?;
        // RFC 7515: who does not know what is critical must not accept the token.
        if decoded.header.crit.is_some() {
            return Err(TokenRefusal::Extension);
        }
        let claims = decoded.claims;
        let expires = moment(&claims, "exp")?.ok_or(TokenRefusal::Missing("exp"))?;
        if now >= expires.after(*leeway) {
            return Err(TokenRefusal::Expired);
        }
        match moment(&claims, "nbf")? {
            Some(begins) if now.after(*leeway) < begins => Err(TokenRefusal::NotYetValid),
            _ => Ok(Claims(claims)),
        }
    }
}

fn secret(settings: &TokenSettings) -> Result<DecodingKey, TokenError> {
    // Whoever has a public key could sign with it, if it were a secret.
    if settings.key.trim_ascii_start().starts_with(b"-----BEGIN ") {
        return Err(TokenError::PemAsSecret { algorithm: settings.algorithm.clone() });
    }
    let length = settings.key.len();
    if length < SECRET_MIN {
        return Err(TokenError::ShortSecret { length });
    }
    Ok(DecodingKey::from_secret(&settings.key))
}

fn public_key(settings: &TokenSettings, algorithm: Algorithm) -> Result<DecodingKey, TokenError> {
    let pem = || TokenError::Pem { algorithm: settings.algorithm.clone() };
    // The library also takes private keys and certificates, reads what comes first, and finds each
    // signature wrong.
    let text = str::from_utf8(&settings.key).map_err(|_| pem())?;
    let mut begins = text.split("-----BEGIN ").skip(1);
    let is_public =
        |part: &str| part.starts_with("PUBLIC KEY-----") || part.starts_with("RSA PUBLIC KEY-----");
    if !begins.next().is_some_and(is_public) || begins.next().is_some() {
        return Err(pem());
    }
    // An EC key is a point: one byte, and one or two coordinates.
    let (key, needs, fits): (_, _, fn(usize) -> bool) = match algorithm {
        Algorithm::ES256 => {
            let fits = |length| matches!(length, 33 | 65);
            (DecodingKey::from_ec_pem(text.as_bytes()), "an EC key of the curve P-256", fits)
        }
        Algorithm::ES384 => {
            let fits = |length| matches!(length, 49 | 97);
            (DecodingKey::from_ec_pem(text.as_bytes()), "an EC key of the curve P-384", fits)
        }
        Algorithm::EdDSA => {
            (DecodingKey::from_ed_pem(text.as_bytes()), "an Ed25519 key", |length| length == 32)
        }
        _ => {
            let fits = |length| length > RSA_MIN;
            (DecodingKey::from_rsa_pem(text.as_bytes()), "an RSA key of 2048 bits or more", fits)
        }
    };
    let other = || TokenError::OtherKey { algorithm: settings.algorithm.clone(), needs };
    let key = key.map_err(|_| other())?;
    let length = key.try_get_as_bytes().map_or(0, <[u8]>::len);
    if fits(length) { Ok(key) } else { Err(other()) }
}

/// The moment a claim names: seconds since the Unix epoch, decimals allowed.
fn moment(
    claims: &Map<String, Value>,
    name: &'static str,
) -> Result<Option<Timestamp>, TokenRefusal> {
    let Some(claim) = claims.get(name) else {
        return Ok(None);
    };
    if let Some(secs) = claim.as_u64() {
        return Ok(Some(Timestamp::from_secs(secs)));
    }
    let secs = claim.as_f64().ok_or(TokenRefusal::Missing(name))?;
    // What fails here is more than any moment there is; what is negative was before all of them.
    let since = Duration::try_from_secs_f64(secs.max(0.0)).unwrap_or(Duration::MAX);
    Ok(Some(Timestamp::EPOCH.after(since)))
}

fn refusal(error: &Error, token: &str) -> TokenRefusal {
    match error.kind() {
        ErrorKind::InvalidSignature => TokenRefusal::Signature,
        ErrorKind::InvalidAlgorithm => TokenRefusal::Algorithm,
        ErrorKind::InvalidIssuer => TokenRefusal::Issuer,
        ErrorKind::InvalidAudience => TokenRefusal::Audience,
        ErrorKind::MissingRequiredClaim(name) if name == "iss" => TokenRefusal::Missing("iss"),
        ErrorKind::MissingRequiredClaim(name) if name == "aud" => TokenRefusal::Missing("aud"),
        // A header that is JSON but none the library knows: that of an unknown algorithm, or `none`.
        ErrorKind::Json(json) if json.is_data() && jsonwebtoken::decode_header(token).is_err() => {
            TokenRefusal::Algorithm
        }
        _ => TokenRefusal::Malformed,
    }
}

impl PartialEq for Tokens {
    /// Whether both believe the same tokens.
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&*self.0, &*other.0);
        a.validation == b.validation
            && a.leeway == b.leeway
            && a.key.try_get_as_bytes().ok() == b.key.try_get_as_bytes().ok()
    }
}

impl Eq for Tokens {}

impl fmt::Debug for Tokens {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("algorithm", &self.0.validation.algorithms)
            .field("issuer", &self.0.validation.iss)
            .field("audience", &self.0.validation.aud)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
