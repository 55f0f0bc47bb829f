use super::*;
use std::io::Write;

const GOOD: Reading =
    Reading { channel: None, time_ms: 100, busy_ms: 60, receiving_ms: 20, transmitting_ms: 30 };

fn at(time_ms: u64) -> Reading {
    Reading { time_ms, ..GOOD }
}

#[test]
fn a_line_has_four_or_five_numbers() {
    assert_eq!(text::line(b"100 60 20 30"), Ok(GOOD));
    assert_eq!(text::line(b"  100\t60 20  30\r"), Ok(GOOD));
    assert_eq!(text::line(b"100 60 20 30 2412"), Ok(Reading { channel: Some(2412), ..GOOD }));
    let hostile: [&[u8]; 9] = [
        b"",
        b"100 60 20",
        b"100 60 20 30 2412 1",
        b"100 60 20 -30",
        b"100 60 20 3e1",
        b"100 60 20 18446744073709551616",
        b"100 60 20 30 4294967296",
        b"100 60 20 \xff",
        b"100,60,20,30",
    ];
    for bytes in hostile {
        assert_eq!(text::line(bytes), Err(NoReading::Malformed), "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_file_may_grow_be_replaced_and_vanish() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("samples");
    let mut source = OpenSource::new(&Source::File(path.clone()), 1).unwrap();
    assert_eq!(source.read(), Err(NoReading::Nothing), "it need not be there yet");
    let mut file = File::create(&path).unwrap();
    for number in 1..200_u64 {
        // Half of the next line is there already.
        write!(file, "{} 60 20", 100 * number).unwrap();
        let last = if number == 1 { Err(NoReading::Nothing) } else { Ok(at(100 * (number - 1))) };
        assert_eq!(source.read(), last);
        writeln!(file, " 30").unwrap();
        assert_eq!(source.read(), Ok(at(100 * number)));
    }
    fs::write(folder.path().join("new"), "7 6 2 3\n").unwrap();
    fs::rename(folder.path().join("new"), &path).unwrap();
    assert_eq!(source.read().unwrap().time_ms, 7);
    fs::write(&path, "7 6 2\n").unwrap();
    assert_eq!(source.read(), Err(NoReading::Malformed));
    fs::write(&path, [b'1'; 5000]).unwrap();
    assert_eq!(source.read(), Err(NoReading::Nothing), "no line has an end");
    fs::remove_file(&path).unwrap();
    assert_eq!(source.read(), Err(NoReading::Nothing));
}

#[test]
fn a_socket_gives_the_latest_reading_and_is_accessible_to_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("samples");
    let wanted = Source::Socket(path.clone());
    // Left by a process that has ended.
    drop(UnixDatagram::bind(&path).unwrap());
    let mut source = OpenSource::new(&wanted, 1).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let sender = UnixDatagram::unbound().unwrap();
    sender.send_to(b"50 1 1 1", &path).unwrap();
    sender.send_to(b"100 60 20 30\n", &path).unwrap();
    assert_eq!((source.read(), source.read()), (Ok(GOOD), Err(NoReading::Nothing)));
    sender.send_to(&[b' '; 4096], &path).unwrap();
    assert_eq!(source.read(), Err(NoReading::Malformed), "what is too long is not cut to fit");
    drop(source);
    assert!(!path.exists());
    fs::write(&path, "precious").unwrap();
    assert!(OpenSource::new(&wanted, 1).is_err(), "what is no socket stays");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}
