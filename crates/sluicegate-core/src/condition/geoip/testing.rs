// Writes MaxMind DB files, for tests: <https://maxmind.github.io/MaxMind-DB/>, version 2.0. A file is a
// binary search tree over the bits of addresses, 16 zero bytes, the records, a marker, and metadata.

/// Bytes between the tree and the records.
const SEPARATOR: usize = 16;
const MARKER: &[u8] = b"\xab\xcd\xefMaxMind.com";

/// A database of IPv6 addresses, with the IPv4 addresses below `::/96`.
#[derive(Clone)]
pub(crate) struct Writer {
    database_type: &'static str,
    /// The next node, for a bit that is 0 and for a bit that is 1.
    nodes: Vec<[Next; 2]>,
    records: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Next {
    Nothing,
    Node(usize),
    /// A record, by its offset.
    Record(usize),
}

#[derive(Clone)]
pub(crate) enum Value {
    Text(&'static str),
    U16(u16),
    U32(u32),
    U64(u64),
    List(Vec<Self>),
    Map(Vec<(&'static str, Self)>),
}

impl Writer {
    pub(crate) fn new(database_type: &'static str) -> Self {
        Self { database_type, nodes: vec![[Next::Nothing; 2]], records: Vec::new() }
    }

    /// A network with a known country.
    pub(crate) fn country(self, network: &str, code: &'static str) -> Self {
        let code = Value::Map(vec![("iso_code", Value::Text(code))]);
        self.insert(network, &Value::Map(vec![("country", code)]))
    }

    /// A network and its record. No network lies within another.
    pub(crate) fn insert(mut self, network: &str, record: &Value) -> Self {
        let (address, bits) = network.split_once('/').expect("a prefix");
        let bits: u32 = bits.parse().expect("a number of bits");
        let (address, bits) = match address.parse().expect("an address") {
            std::net::IpAddr::V4(v4) => (u128::from(v4.to_bits()), bits + 96),
            std::net::IpAddr::V6(v6) => (v6.to_bits(), bits),
        };
        let start = self.records.len();
        record.write(&mut self.records);

        let side = |bit: u32| (address >> (127 - bit) & 1) as usize;
        let mut node = 0;
        for bit in 0..bits - 1 {
            node = match self.nodes[node][side(bit)] {
                Next::Node(next) => next,
                _ => {
                    self.nodes.push([Next::Nothing; 2]);
                    let next = self.nodes.len() - 1;
                    self.nodes[node][side(bit)] = Next::Node(next);
                    next
                }
            };
        }
        self.nodes[node][side(bits - 1)] = Next::Record(start);
        self
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut file = Vec::new();
        for next in self.nodes.iter().flatten() {
            let number = match next {
                Next::Nothing => self.nodes.len(),
                Next::Node(node) => *node,
                Next::Record(start) => self.nodes.len() + SEPARATOR + start,
            };
            // Numbers of 24 bits, the highest first.
            assert!(number < 1 << 24, "a larger database needs wider numbers");
            file.extend_from_slice(&(number as u32).to_be_bytes()[1..]);
        }
        file.extend_from_slice(&[0; SEPARATOR]);
        file.extend_from_slice(&self.records);
        file.extend_from_slice(MARKER);
        let metadata = Value::Map(vec![
            ("binary_format_major_version", Value::U16(2)),
            ("binary_format_minor_version", Value::U16(0)),
            ("build_epoch", Value::U64(1_767_225_600)),
            ("database_type", Value::Text(self.database_type)),
            ("description", Value::Map(vec![("en", Value::Text("made by a test"))])),
            ("ip_version", Value::U16(6)),
            ("languages", Value::List(vec![Value::Text("en")])),
            ("node_count", Value::U32(self.nodes.len() as u32)),
            ("record_size", Value::U16(24)),
        ]);
        metadata.write(&mut file);
        file
    }
}

impl Value {
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Text(text) => {
                control(2, text.len(), bytes);
                bytes.extend_from_slice(text.as_bytes());
            }
            Self::U16(number) => numeral(5, &number.to_be_bytes(), bytes),
            Self::U32(number) => numeral(6, &number.to_be_bytes(), bytes),
            Self::U64(number) => numeral(9, &number.to_be_bytes(), bytes),
            Self::Map(fields) => {
                control(7, fields.len(), bytes);
                for (name, value) in fields {
                    Self::Text(name).write(bytes);
                    value.write(bytes);
                }
            }
            Self::List(values) => {
                control(11, values.len(), bytes);
                values.iter().for_each(|value| value.write(bytes));
            }
        }
    }
}

fn numeral(kind: u8, number: &[u8], bytes: &mut Vec<u8>) {
    control(kind, number.len(), bytes);
    bytes.extend_from_slice(number);
}

/// The type in three bits, or in a byte of its own, and the size in five bits. The tests need no more.
fn control(kind: u8, size: usize, bytes: &mut Vec<u8>) {
    assert!(size < 29, "longer values need more bytes for their size");
    let size = size as u8;
    match kind {
        1..=7 => bytes.push(kind << 5 | size),
        extended => bytes.extend([size, extended - 7]),
    }
}
