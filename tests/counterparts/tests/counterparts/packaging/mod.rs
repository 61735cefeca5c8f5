//! What is in `packaging/`, read by the programs that read it elsewhere: hadolint, Helm, the schemas of Kubernetes and of
//! compose files, and systemd. No container, cluster or systemd runs here.

mod chart;
mod compose;
mod image;
mod program;
mod unit;
