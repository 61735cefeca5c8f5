//! What the dashboard shows, in a program of its own: the recorder of metrics keeps 64 policies of a process apart.

mod failed;
#[path = "../serving/http.rs"]
mod http;
mod leased;
mod status;
