//! How the process reads its files again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::client::{Client, Sent};
use super::sluicegate::{FILE, serve};

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_reloads_in_a_row_fail_no_request() {
    let server = serve(&[]);
    let done = Arc::new(AtomicBool::new(false));
    let clients = Client::all(server.http, server.grpc).await.map(|mut client| {
        let done = Arc::clone(&done);
        tokio::spawn(async move {
            while !done.load(Ordering::Relaxed) {
                assert_eq!(client.send().await, Sent::Answered);
            }
        })
    });
    for count in 0..100 {
        // A row keeps what was spent under eight sets of numbers.
        let count =
            if count == 99 { "3999999999" } else { ["3000000000", "3500000000"][count % 2] };
        std::fs::write(&server.file, FILE.replace("4000000000", count)).expect("a file");
        server.signal("HUP");
    }
    // The last one is in force, however many were read.
    server.says("3999999999");
    done.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("every request is answered");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_is_located_and_changes_nothing() {
    let server = serve(&[]);
    let mut clients = Client::all(server.http, server.grpc).await;
    std::fs::write(&server.file, FILE.replace("year", "fortnight")).expect("a file");
    server.signal("HUP");
    let problem = server.says("files not read again").to_string();
    assert!(problem.contains("ratelimit.yaml:4:23") && problem.contains("fortnight"), "{problem}");
    for client in &mut clients {
        assert_eq!(client.send().await, Sent::Answered);
    }
    std::fs::write(&server.file, FILE).expect("a file");
    server.signal("HUP");
    server.logged(|line| line["message"] == "files read again");
}
