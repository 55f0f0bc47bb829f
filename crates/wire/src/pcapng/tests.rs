use super::*;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};

/// The packets of a capture: interface, nanoseconds, bytes, comment.
type Packet = (u32, u64, Vec<u8>, Option<String>);

fn read(capture: &[u8]) -> (Vec<String>, Vec<Packet>) {
    let mut reader = PcapNgReader::new(capture).unwrap();
    let (mut interfaces, mut packets) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(block) => {
                interfaces.push(format!("{:?} {:?}", block.linktype, block.options))
            }
            Block::EnhancedPacket(block) => {
                assert_eq!(block.original_len as usize, block.data.len());
                let comment = block.options.first().map(|option| match option {
                    EnhancedPacketOption::Comment(text) => text.to_string(),
                    other => panic!("{other:?}"),
                });
                let nanos = u64::try_from(block.timestamp.as_nanos()).unwrap();
                packets.push((block.interface_id, nanos, block.data.to_vec(), comment));
            }
            other => panic!("{other:?}"),
        }
    }
    (interfaces, packets)
}

#[test]
fn written_captures_are_read_back() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let n0 = writer.add_interface("n0", LinkType::Ieee80211).unwrap();
    let n1 = writer.add_interface("gateway", LinkType::RawIp).unwrap();
    writer.packet(n0, Instant::from_nanos(1), &[1, 2, 3], None).unwrap();
    writer.packet(n1, Instant::from_nanos(4_294_967_297), &[], Some("dropped: queue full")).unwrap();
    let n2 = writer.add_interface("n2", LinkType::Ieee80211).unwrap();
    writer.packet(n2, Instant::FAR_FUTURE, &[0; 64], Some("")).unwrap();
    let (interfaces, packets) = read(&writer.finish().unwrap());

    assert_eq!(
        interfaces,
        [
            r#"IEEE802_11 [IfName("n0"), IfTsResol(9)]"#,
            r#"RAW [IfName("gateway"), IfTsResol(9)]"#,
            r#"IEEE802_11 [IfName("n2"), IfTsResol(9)]"#,
        ]
    );
    assert_eq!(
        packets,
        [
            (0, 1, vec![1, 2, 3], None),
            (1, 4_294_967_297, vec![], Some("dropped: queue full".into())),
            (2, u64::MAX, vec![0; 64], Some(String::new())),
        ]
    );
}

#[test]
fn a_capture_begins_the_same_on_every_machine() {
    let capture = Writer::new(Vec::new()).unwrap().finish().unwrap();
    assert_eq!(capture[..12], [0x0a, 0x0d, 0x0d, 0x0a, 44, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a]);
}

#[test]
fn a_comment_beyond_the_option_is_cut_between_characters() {
    let long = "é".repeat(40_000);
    let mut writer = Writer::new(Vec::new()).unwrap();
    let n0 = writer.add_interface(&long, LinkType::RawIp).unwrap();
    writer.packet(n0, Instant::ZERO, &[1], Some(&long)).unwrap();
    let (_, packets) = read(&writer.finish().unwrap());
    assert_eq!(packets[0].3.as_ref().unwrap().len(), 65_534);
}

#[test]
fn the_interface_of_another_capture_is_refused() {
    let foreign = Writer::new(Vec::new()).unwrap().add_interface("n0", LinkType::RawIp).unwrap();
    let mut writer = Writer::new(Vec::new()).unwrap();
    let error = writer.packet(foreign, Instant::ZERO, &[], None).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

/// A writer that is always full.
struct FullWriter;

impl Write for FullWriter {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_as_such() {
    let error = Writer::new(FullWriter).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}
