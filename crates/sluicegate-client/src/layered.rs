/// The service that a layer of this crate makes of another one.
#[derive(Debug, Clone)]
pub struct Layered<S, L> {
    pub(crate) inner: S,
    pub(crate) layer: L,
}
