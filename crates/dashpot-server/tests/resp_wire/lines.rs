//! Commands in one line, as typed into `telnet`.

use crate::redis::Pair;
use crate::scene::Scene;

#[test]
fn lines_are_read_as_redis_reads_them() {
    let cases: [&[u8]; 34] = [
        b"PING\r\n",
        b"PING\n",
        b"ping hello\r\n",
        b"  PING  \r\n",
        b"\tPING\thello\t\r\n",
        b"ECHO a  \r\n",
        b"ECHO hello world\r\n",
        b"ECHO 'hello world'\r\n",
        b"ECHO \"hello world\"\r\n",
        b"ECHO \"\"\r\n",
        b"ECHO ''\n",
        b"ECHO \"a\\n\\r\\t\\b\\a\\\\\\\"z\"\r\n",
        b"ECHO \"\\x41\\x00\\xfF\\x4\\xg1\\q\"\r\n",
        b"ECHO '\\n\\x41\\'\"'\r\n",
        b"ECHO \"it's\"\r\n",
        b"ECHO 'a\"b'\r\n",
        b"ECHO a\"b c\"\r\n",
        b"ECHO a'b c'\r\n",
        b"ECHO a\\nb\r\n",
        b"ECHO \xc3\xa4\xff\r\n",
        b"\"PING\"\r\n",
        b"'ECHO' \"x\"\r\n",
        b"\"\\x50ING\"\r\n",
        b"'' a\r\n",
        b"\"\"\r\n",
        b"NOSUCH a 'b c' \"\\r\\n\"\r\n",
        b"ECHO\r\n",
        b"$4\r\n",
        b"+PING\r\n",
        b"PING\rhello\r\n",
        b"ECHO a\r\r\n",
        b"PING *\r\n",
        b"CLIENT SETNAME 'a b'\r\n",
        b"PING\r\nECHO a\nPING b\r\n",
    ];
    Pair::start().same(&cases);
}

#[test]
fn empty_lines_and_empty_frames_are_passed_over() {
    let cases: [&[u8]; 9] = [
        b"\r\n",
        b"\n",
        b"\r\n\r\n\n\nPING\r\n\r\n",
        b"   \r\n\t\nPING\r\n",
        b"*0\r\nPING\r\n",
        b"*-1\r\nPING\r\n",
        b"*-9223372036854775808\r\nPING\r\n",
        b"*0\r\n*0\r\n*-1\r\n\r\n*1\r\n$4\r\nPING\r\n*-7\r\n",
        b"PING\r\n*1\r\n$4\r\nPING\r\n\nPING\n*2\r\n$4\r\nECHO\r\n$1\r\na\r\n",
    ];
    Pair::start().same(&cases);
}

#[test]
fn quotes_that_do_not_end_end_the_connection() {
    let cases: [&[u8]; 10] = [
        b"ECHO \"a\r\nPING\r\n",
        b"ECHO 'a\r\nPING\r\n",
        b"ECHO \"a\"b\r\nPING\r\n",
        b"ECHO 'a'b\r\nPING\r\n",
        b"ECHO 'a''b'\r\nPING\r\n",
        b"ECHO \"a\\\"\r\nPING\r\n",
        b"ECHO 'a\\'\r\nPING\r\n",
        b"\"\r\n",
        b"PING\r\nECHO \"\r\nPING\r\n",
        b"ECHO a\"\r\n",
    ];
    Pair::start().same(&cases);
}

#[test]
fn a_throttle_may_be_typed() {
    let scene = Scene::start(&[]);
    let mut wire = scene.connect();
    wire.send("cl.throttle 'user 1' 5 1 3600\r\nCL.THROTTLE \"user\\x201\" 5 1 3600\n");
    assert_eq!(wire.reply().throttle(), [0, 6, 5, -1, 3600]);
    assert_eq!(wire.reply().throttle(), [0, 6, 4, -1, 7200]);
}
