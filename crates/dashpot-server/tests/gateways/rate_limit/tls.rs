//! The question is secret, and asked only of who can prove to be dashpot.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::edge::{ALICE, Edge, MINUTE, begin_in};
use super::plan::Plan;

/// An authority's certificate, one that it signed for this machine, and the key of that.
fn certify() -> (String, String, String) {
    let mut params = CertificateParams::new([]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "an authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    (authority, certificate.pem(), key.serialize_pem())
}

/// Envoy trusts this authority and asks for the name `localhost`.
fn secret(mut plan: Plan, trusted: &str, certificate: &str, key: &str) -> Plan {
    plan.files = vec![
        ("authority.pem", trusted.to_owned(), None),
        ("certificate.pem", certificate.to_owned(), Some("--tls-certificate")),
        ("key.pem", key.to_owned(), Some("--tls-key")),
    ];
    plan.cluster(&[
        "transport_socket:",
        "  name: envoy.transport_sockets.tls",
        "  typed_config:",
        "    \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "    sni: localhost",
        "    common_tls_context:",
        "      alpn_protocols: [h2]",
        "      validation_context:",
        "        trusted_ca: { filename: ../authority.pem }",
        "        match_typed_subject_alt_names: [{ san_type: DNS, matcher: { exact: localhost } }]",
    ])
}

#[test]
fn who_proves_to_be_dashpot_is_asked() {
    let (authority, certificate, key) = certify();
    let edge = Edge::start(secret(Plan::patient(), &authority, &certificate, &key));
    begin_in(MINUTE);
    edge.exhaust(ALICE, &[], 5);
}

/// The same certificate, by an authority that nobody has heard of.
#[test]
fn who_does_not_is_told_nothing() {
    let (other, _, _) = certify();
    let (_, certificate, key) = certify();
    let edge = Edge::start(secret(Plan::of_the_page(), &other, &certificate, &key));
    for _ in 0..10 {
        assert_eq!(edge.passes(ALICE, &[]).field("ratelimit"), None);
    }
}

/// An Envoy that nobody has told.
#[test]
fn in_the_clear_it_is_not_asked() {
    let (authority, certificate, key) = certify();
    let mut plan = secret(Plan::of_the_page(), &authority, &certificate, &key);
    plan.envoys = Plan::of_the_page().envoys;
    let edge = Edge::start(plan);
    for _ in 0..10 {
        assert_eq!(edge.passes(ALICE, &[]).field("ratelimit"), None);
    }
}
