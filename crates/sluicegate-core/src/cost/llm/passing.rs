use super::reader::UsageReader;

/// Reads the usage in a body that an adapter passes on. Without a reader, it does nothing.
#[derive(Debug, Clone, Default)]
pub struct PassingUsage(
    // Boxed, because a reader is large, and bodies are moved.
    Option<Box<UsageReader>>,
);

impl PassingUsage {
    /// Shows what passes to this reader.
    pub fn new(reader: Option<UsageReader>) -> Self {
        Self(reader.map(Box::new))
    }

    /// These bytes have passed.
    pub fn read(&mut self, bytes: &[u8]) {
        if let Some(reader) = &mut self.0 {
            reader.read(bytes);
        }
    }

    /// The body has ended as it should. Later calls do nothing.
    pub fn end(&mut self) {
        if let Some(mut reader) = self.0.take() {
            reader.finish();
        }
    }

    /// The body has failed. What was reported stays, and is not final. Later calls do nothing.
    pub fn fail(&mut self) {
        self.0 = None;
    }
}
