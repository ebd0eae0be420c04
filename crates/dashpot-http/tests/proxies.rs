//! Behind a trusted proxy: the rightmost hop that is none of ours asks, and the proxy is believed.

use crate::common::{Server, get, rules};

/// Whoever connects from 127.0.0.0/8 is one of our proxies, and so is all of 10.0.0.0/8.
fn trusted(more: &str) -> String {
    format!(
        r#"
        [identity]
        trusted_proxies = ["127.0.0.0/8", "10.0.0.0/8"]
        user = "header:x-user-id"
        api_key = "header:x-api-key"
        tier = "header:x-plan"
        default_tier = "free"
        {more}

        [[rule]]
        name = "api"
        by = ["api_key | user | ip"]
        tiers.free = ["2/min"]
        tiers.pro = ["4/min"]
        "#
    )
}

/// All spell one caller: the bucket they share holds two.
async fn assert_one_caller(rule_file: &str, header: &str, spellings: &[&str]) {
    let server = Server::limited(rules(rule_file)).await;
    for (n, spelling) in spellings.iter().enumerate() {
        let status = get("/").line(header, *spelling).status(&server).await;
        assert_eq!(status, if n < 2 { 200 } else { 429 }, "{header}: {spelling}");
    }
    assert_eq!(server.served(), 2);
}

#[tokio::test]
async fn what_stands_to_the_left_does_not_matter() {
    let prefixes = [
        "203.0.113.7",
        "6.6.6.6, 203.0.113.7",
        "127.0.0.1, 10.0.0.1, 203.0.113.7",
        "::ffff:6.6.6.6,203.0.113.7",
        "unknown, \"(){ :;}, 203.0.113.7",
        "203.0.113.7, 10.1.2.3",
        "1.1.1.1, 203.0.113.7, 10.1.2.3, 10.9.9.9:443",
        ", ,,203.0.113.7, ,",
    ];
    assert_one_caller(&trusted(""), "x-forwarded-for", &prefixes).await;
}

#[tokio::test]
async fn all_lines_are_one() {
    let server = Server::limited(rules(&trusted(""))).await;
    for n in 0..6 {
        // What the caller wrote comes first; the proxy's line is the last.
        let asked = get("/").line("x-forwarded-for", format!("6.6.6.{n}"));
        let asked = asked.line("X-Forwarded-For", format!("7.7.7.{n}, 8.8.8.{n}"));
        let status = asked.line("x-forwarded-for", "203.0.113.7").status(&server).await;
        assert_eq!(status, if n < 2 { 200 } else { 429 }, "{n}");
    }
}

#[tokio::test]
async fn one_address_has_many_spellings() {
    let v4 = [
        "203.0.113.7",
        "203.0.113.7:443",
        "203.0.113.7:1",
        "::ffff:203.0.113.7",
        "[::ffff:203.0.113.7]:80",
        "::FFFF:cb00:7107",
        "\"203.0.113.7\"",
    ];
    assert_one_caller(&trusted(""), "x-forwarded-for", &v4).await;
    let forwarded = trusted("client_ip_header = 'forwarded'");
    let elements = [
        "for=203.0.113.7",
        "For=\"203.0.113.7:47011\";proto=http;by=10.0.0.1",
        "for=6.6.6.6, for=\"[::ffff:203.0.113.7]\"",
        "for=_hidden, for=unknown, for=203.0.113.7, for=10.0.0.3",
    ];
    assert_one_caller(&forwarded, "forwarded", &elements).await;
}

#[tokio::test]
async fn all_addresses_of_an_ipv6_network_are_one_caller() {
    let mates = [
        "2001:db8:0:1::1",
        "2001:db8:0:1::2",
        "2001:db8:0:1:ffff:ffff:ffff:ffff",
        "[2001:db8:0:1::5]:443",
        "2001:DB8:0:1::6%eth0",
        "2001:0db8:0000:0001:0000:0000:0000:0007",
    ];
    assert_one_caller(&trusted(""), "x-forwarded-for", &mates).await;

    let server = Server::limited(rules(&trusted(""))).await;
    for neighbour in ["2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:1:1::1"] {
        let asked = get("/").line("x-forwarded-for", neighbour);
        assert_eq!(asked.statuses(&server, 3).await, [200, 200, 429], "{neighbour}");
    }
}

/// CVE-2026-30827: masked first and mapped then, all of IPv4 was one caller.
#[tokio::test]
async fn two_ipv4_callers_never_share_a_bucket() {
    let server = Server::limited(rules(&trusted(""))).await;
    for n in 0..16 {
        let address = match n % 4 {
            0 => format!("203.0.113.{n}"),
            1 => format!("::ffff:203.0.113.{n}"),
            2 => format!("[::ffff:203.0.113.{n}]:443"),
            _ => format!("203.0.113.{n}:80"),
        };
        let asked = get("/").line("x-forwarded-for", &*address);
        assert_eq!(asked.statuses(&server, 3).await, [200, 200, 429], "{address}");
    }
}

/// The same for those who connect: a server on `[::]` sees IPv4 mapped into IPv6.
#[tokio::test]
async fn two_ipv4_callers_of_a_server_for_both_never_share_a_bucket() {
    let text = "[[rule]]\nname = 'ip'\nby = ['ip']\nlimits = ['2/min']";
    let Ok(mut server) = Server::limited_at("[::]:0", rules(text)).await else {
        return eprintln!("there is no IPv6 here");
    };
    server.address.set_ip([127, 0, 0, 1].into());
    for peer in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
        let statuses = get("/").from(peer).statuses(&server, 3).await;
        assert_eq!(statuses, [200, 200, 429], "{peer}");
    }
}

/// And the proxy is recognised, though its address comes mapped.
#[tokio::test]
async fn a_proxy_that_connects_mapped_is_still_trusted() {
    let Ok(mut server) = Server::limited_at("[::]:0", rules(&trusted(""))).await else {
        return eprintln!("there is no IPv6 here");
    };
    server.address.set_ip([127, 0, 0, 1].into());
    for address in ["203.0.113.1", "203.0.113.2"] {
        let asked = get("/").line("x-forwarded-for", address);
        assert_eq!(asked.statuses(&server, 3).await, [200, 200, 429], "{address}");
    }
    let pro = get("/").line("x-user-id", "carol").line("x-plan", "pro");
    assert_eq!(pro.statuses(&server, 5).await, [200, 200, 200, 200, 429]);
}

#[tokio::test]
async fn other_headers_than_the_one_agreed_on_are_not_read() {
    let server = Server::limited(rules(&trusted(""))).await;
    let others = ["forwarded", "x-real-ip", "cf-connecting-ip", "true-client-ip", "x-client-ip"];
    for (n, other) in others.iter().enumerate() {
        let asked = get("/").line("x-forwarded-for", "203.0.113.7");
        let status = asked.line(other, format!("198.51.100.{n}")).status(&server).await;
        assert_eq!(status, if n < 2 { 200 } else { 429 }, "{other}");
    }
}

#[tokio::test]
async fn the_proxy_is_believed_about_user_key_and_tier() {
    let server = Server::limited(rules(&trusted(""))).await;
    for who in
        [("x-user-id", "alice"), ("x-user-id", "bob"), ("x-api-key", "k1"), ("x-api-key", "k2")]
    {
        let statuses = get("/").lines(&[who]).statuses(&server, 3).await;
        assert_eq!(statuses, [200, 200, 429], "{who:?}");
    }
    let pro = get("/").line("x-user-id", "carol").line("x-plan", "pro");
    assert_eq!(pro.statuses(&server, 5).await, [200, 200, 200, 200, 429]);
    // A tier nobody has heard of is the default one.
    let odd = get("/").line("x-user-id", "dave").line("x-plan", "platinum");
    assert_eq!(odd.statuses(&server, 3).await, [200, 200, 429]);
    // An empty name is no name: those count by their address.
    let empty = get("/").line("x-user-id", "").line("x-forwarded-for", "203.0.113.9");
    assert_eq!(empty.statuses(&server, 2).await, [200, 200]);
    let nameless = get("/").line("x-forwarded-for", "203.0.113.9");
    assert_eq!(nameless.status(&server).await, 429);
}

/// The key comes first in `by`; one user with two keys has two buckets, as the rule says.
#[tokio::test]
async fn the_first_fact_that_is_present_counts() {
    let server = Server::limited(rules(&trusted(""))).await;
    for key in ["k1", "k2"] {
        let asked = get("/").line("x-api-key", key).line("x-user-id", "alice");
        assert_eq!(asked.statuses(&server, 3).await, [200, 200, 429], "{key}");
    }
    assert_eq!(get("/").line("x-user-id", "alice").status(&server).await, 200);
}

/// A user and a key that are spelled alike are not one.
#[tokio::test]
async fn facts_of_different_kinds_do_not_meet() {
    let server = Server::limited(rules(&trusted(""))).await;
    for header in ["x-api-key", "x-user-id", "x-forwarded-for"] {
        let asked = get("/").line(header, "203.0.113.7");
        assert_eq!(asked.statuses(&server, 3).await, [200, 200, 429], "{header}");
    }
}

#[tokio::test]
async fn who_connects_past_the_proxy_is_not_believed() {
    let text = trusted("").replace("127.0.0.0/8", "127.0.0.1/32");
    let server = Server::limited(rules(&text)).await;
    for n in 0..5 {
        let asked = get("/").from("127.0.0.2").line("x-forwarded-for", format!("203.0.113.{n}"));
        let asked = asked.line("x-user-id", format!("u{n}")).line("x-plan", "pro");
        assert_eq!(asked.status(&server).await, if n < 2 { 200 } else { 429 }, "{n}");
    }
    let proxied = get("/").line("x-forwarded-for", "203.0.113.1");
    assert_eq!(proxied.statuses(&server, 3).await, [200, 200, 429]);
}

/// With a number of hops, the n-th from the right is who asks.
#[tokio::test]
async fn hops_are_counted_from_the_right() {
    let hops =
        trusted("").replace(r#"trusted_proxies = ["127.0.0.0/8", "10.0.0.0/8"]"#, "hops = 2");
    let spellings = [
        "203.0.113.7, 198.51.100.1",
        "6.6.6.6, 203.0.113.7, 198.51.100.2",
        "6.6.6.6,203.0.113.7:80,unknown",
        "a, b, c, ::ffff:203.0.113.7, 198.51.100.3",
    ];
    assert_one_caller(&hops, "x-forwarded-for", &spellings).await;
}

/// The address on a list is the one that was found, whoever is in between.
#[tokio::test]
async fn lists_of_networks_are_about_who_asks() {
    let text = trusted("") + "\n[block]\nip = ['203.0.113.0/24', '2001:db8::/32']\n";
    let server = Server::limited(rules(&text)).await;
    for address in ["203.0.113.7", "::ffff:203.0.113.8", "[2001:db8::1]:80"] {
        let asked = get("/").line("x-forwarded-for", address);
        assert_eq!(asked.status(&server).await, 403, "{address}");
    }
    for address in ["203.0.114.7", "203.0.113.7, 198.51.100.1"] {
        let asked = get("/").line("x-forwarded-for", address);
        assert_eq!(asked.status(&server).await, 200, "{address}");
    }
}
