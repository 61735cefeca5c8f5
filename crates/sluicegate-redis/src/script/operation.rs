/// What a charge asks the store to do. The numbers are the codes that `take.lua` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Take = 1,
    Peek = 2,
    Reset = 3,
}
