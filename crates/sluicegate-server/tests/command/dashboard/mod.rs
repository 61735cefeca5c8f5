//! What the dashboard shows. The recorder of metrics keeps 64 policies of a process apart, and the other tests of this
//! program run the command in processes of its own.

mod failed;
#[path = "../../server/serving/http.rs"]
pub(crate) mod http;
mod leased;
mod peaks;
mod status;

/// Held by each test that decides in this process. All of them count for the one recorder.
static DECIDES: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
