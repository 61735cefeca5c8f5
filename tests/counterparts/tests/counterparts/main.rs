//! Tests against what users run: a browser, proxies that ask a server, clients for Python, etcd, and the programs that
//! read what is in `packaging/`.

mod browser;
mod dashboard;
mod etcd;
mod grpc;
mod logs;
mod masters;
mod openai;
mod packaging;
mod pgbouncer;
mod proxies;
mod trial;
