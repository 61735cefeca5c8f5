use super::generated::compare::{CompareTarget, TargetUnion};
use super::generated::request_op::Request;
use super::generated::{Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp};

/// The key does not exist.
pub(super) fn is_absent(key: &[u8]) -> Compare {
    compare(key, CompareTarget::Create, TargetUnion::CreateRevision(0))
}

/// The key was last changed in this revision; 0 if it does not exist.
pub(super) fn is_of_revision(key: &[u8], revision: i64) -> Compare {
    compare(key, CompareTarget::Mod, TargetUnion::ModRevision(revision))
}

/// The key ends with this lease.
pub(super) fn is_of_lease(key: &[u8], lease: i64) -> Compare {
    compare(key, CompareTarget::Lease, TargetUnion::Lease(lease))
}

fn compare(key: &[u8], target: CompareTarget, value: TargetUnion) -> Compare {
    Compare { target: target.into(), key: key.to_vec(), target_union: Some(value) }
}

pub(super) fn get(key: &[u8]) -> RequestOp {
    let range = RangeRequest { key: key.to_vec(), ..RangeRequest::default() };
    RequestOp { request: Some(Request::RequestRange(range)) }
}

/// Writes a key that ends with a lease, or stays if that is 0.
pub(super) fn put(key: &[u8], value: &str, lease: i64) -> RequestOp {
    let put = PutRequest { key: key.to_vec(), value: value.as_bytes().to_vec(), lease };
    RequestOp { request: Some(Request::RequestPut(put)) }
}

/// Deletes all keys from the first one to before the second one; if that is empty, the first one.
pub(super) fn delete(key: &[u8], end: &[u8]) -> RequestOp {
    let range = DeleteRangeRequest { key: key.to_vec(), range_end: end.to_vec() };
    RequestOp { request: Some(Request::RequestDeleteRange(range)) }
}
