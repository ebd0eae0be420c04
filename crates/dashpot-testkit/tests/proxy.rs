//! The proxy breaks what it should, and nothing else.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use dashpot_testkit::{Fault, Proxy};

/// Sends back what it gets, to anybody, for as long as the test lasts.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || std::io::copy(&mut stream.try_clone().unwrap(), &mut stream));
        }
    });
    address
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream
}

fn echoes(stream: &mut TcpStream, text: &[u8]) -> bool {
    let mut back = vec![0; text.len()];
    stream.write_all(text).is_ok() && stream.read_exact(&mut back).is_ok() && back == text
}

/// How much still comes before it ends, if it does.
fn rest(stream: &mut TcpStream) -> Option<usize> {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => None,
        _ => Some(rest.len()),
    }
}

/// Whether nothing comes for a while.
fn is_silent(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let silent =
        stream.read(&mut [0; 1]).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock);
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    silent
}

#[test]
fn without_a_fault_everything_passes() {
    let proxy = Proxy::to(&echo());
    let mut streams: Vec<_> = (0..10).map(|_| connect(&proxy)).collect();
    for stream in &mut streams {
        assert!(echoes(stream, b"hello"));
    }
    assert_eq!(proxy.connections(), 10);

    let large = vec![7; 3_000_000];
    let mut reader = connect(&proxy);
    let mut writer = reader.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            writer.write_all(&large).unwrap();
            writer.shutdown(std::net::Shutdown::Write).unwrap();
        });
        assert_eq!(rest(&mut reader), Some(large.len()), "and the end of it");
    });
}

#[test]
fn a_delay_is_added_to_each_direction_and_slows_nothing_else() {
    let proxy = Proxy::to(&echo());
    let mut stream = connect(&proxy);
    proxy.set(Fault::Delay(Duration::from_millis(50)));
    let start = Instant::now();
    assert!(echoes(&mut stream, b"slow"));
    assert!(start.elapsed() >= Duration::from_millis(100));

    // Fifty on their way at once, not one after another.
    let start = Instant::now();
    let mut writer = stream.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| (0..50).for_each(|_| writer.write_all(b"slow").unwrap()));
        stream.read_exact(&mut [0; 200]).unwrap();
    });
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(100) && took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn while_it_hangs_nothing_passes_and_nothing_is_lost() {
    let proxy = Proxy::to(&echo());
    let mut old = connect(&proxy);
    assert!(echoes(&mut old, b"before"));
    proxy.set(Fault::Hang);
    let mut new = connect(&proxy);
    old.write_all(b"old").unwrap();
    new.write_all(b"new").unwrap();
    assert!(is_silent(&mut old) && is_silent(&mut new));

    proxy.set(Fault::None);
    let mut back = [0; 3];
    old.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"old");
    new.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"new");
}

#[test]
fn what_is_dropped_is_lost_and_the_connection_stays() {
    let proxy = Proxy::to(&echo());
    let mut stream = connect(&proxy);
    proxy.set(Fault::Drop);
    stream.write_all(b"lost").unwrap();
    assert!(is_silent(&mut stream));
    proxy.set(Fault::None);
    assert!(echoes(&mut stream, b"found"));
}

#[test]
fn refused_connections_end_at_once() {
    let proxy = Proxy::to(&echo());
    let mut old = connect(&proxy);
    assert!(echoes(&mut old, b"before"));
    proxy.set(Fault::Refuse);
    assert_eq!(rest(&mut old), Some(0));
    assert_eq!(rest(&mut connect(&proxy)), Some(0));
    assert_eq!(proxy.connections(), 2);
    proxy.set(Fault::None);
    assert!(echoes(&mut connect(&proxy), b"after"));
}

#[test]
fn a_cut_ends_what_there_is_and_nothing_else() {
    let proxy = Proxy::to(&echo());
    let mut streams: Vec<_> = (0..5).map(|_| connect(&proxy)).collect();
    assert!(streams.iter_mut().all(|stream| echoes(stream, b"before")));
    proxy.cut();
    assert!(streams.iter_mut().all(|stream| rest(stream) == Some(0)));
    assert!(echoes(&mut connect(&proxy), b"after"));

    // Also while it hangs.
    let mut stream = connect(&proxy);
    assert!(echoes(&mut stream, b"before"));
    proxy.set(Fault::Hang);
    stream.write_all(b"never").unwrap();
    proxy.cut();
    assert_eq!(rest(&mut stream), Some(0));
}

#[test]
fn a_reply_can_be_cut_in_the_middle() {
    let proxy = Proxy::to(&echo());
    let mut stream = connect(&proxy);
    assert!(echoes(&mut stream, b"before"));
    for bytes in [7, 1, 0, 5] {
        proxy.cut_after(bytes);
        stream.write_all(b"a reply").unwrap();
        assert_eq!(rest(&mut stream), Some(bytes as usize));
        stream = connect(&proxy);
    }
    stream.write_all(b"a reply").unwrap();
    assert_eq!(rest(&mut stream), Some(5), "each of them");
    proxy.cut_after(None);
    assert!(echoes(&mut connect(&proxy), b"a whole reply"));
}

#[test]
fn nobody_behind_it_is_an_end() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let proxy = Proxy::to(&nobody);
    assert_eq!(rest(&mut connect(&proxy)), Some(0));
}

#[test]
fn threads_and_connections_end_with_it() {
    let echo = echo();
    for fault in [Fault::None, Fault::Hang, Fault::Drop, Fault::Delay(Duration::from_secs(60))] {
        let proxy = Proxy::to(&echo);
        let mut streams: Vec<_> = (0..5).map(|_| connect(&proxy)).collect();
        assert!(streams.iter_mut().all(|stream| echoes(stream, b"before")));
        proxy.set(fault);
        streams.iter_mut().for_each(|stream| stream.write_all(b"on its way").unwrap());
        let address = proxy.address();
        let start = Instant::now();
        drop(proxy);
        assert!(start.elapsed() < Duration::from_secs(5));
        assert!(streams.iter_mut().all(|stream| rest(stream).is_some()));
        assert!(TcpStream::connect(address).is_err());
    }
}
