#[cfg(feature = "deadpool")]
use std::future::poll_fn;
use std::sync::Arc;
#[cfg(feature = "deadpool")]
use std::task::Poll;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use crate::engine::EngineError;

/// Where statements are sent: a client, or a pool of them.
///
/// For another pool than that of `deadpool-postgres`, take a client out of it and call its `query_typed`. Or keep prepared
/// statements: the texts of those with parameters are always the same three.
///
/// A call is dropped at the deadline. A connection that is being made then has to be made all the same, or none ever is
/// where that takes longer than the deadline.
pub trait Connections: Send + Sync + 'static {
    /// Runs a statement with these parameters, and returns its rows.
    ///
    /// # Errors
    ///
    /// If there is no connection, or the statement fails.
    fn query(
        &self,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> impl Future<Output = Result<Vec<Row>, EngineError>> + Send;
}

impl Connections for Arc<Client> {
    async fn query(
        &self,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, EngineError> {
        Ok(self.query_typed(statement, parameters).await?)
    }
}

#[cfg(feature = "deadpool")]
#[cfg_attr(docsrs, doc(cfg(feature = "deadpool")))]
impl Connections for deadpool_postgres::Pool {
    async fn query(
        &self,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, EngineError> {
        Ok(client(self).await?.query_typed(statement, parameters).await?)
    }
}

/// Takes a connection out of the pool.
///
/// A call is dropped at the deadline, and a new connection may take longer than that to be made. So that goes on by itself,
/// and a later call finds the connection in the pool. Otherwise none would ever be made.
#[cfg(feature = "deadpool")]
async fn client(pool: &deadpool_postgres::Pool) -> Result<deadpool_postgres::Object, EngineError> {
    let owned = pool.clone();
    let mut getting = Box::pin(async move { owned.get().await });
    let at_once = poll_fn(|cx| match getting.as_mut().poll(cx) {
        Poll::Ready(got) => Poll::Ready(Some(got)),
        Poll::Pending => Poll::Ready(None),
    });
    if let Some(got) = at_once.await {
        return Ok(got?);
    }
    let status = pool.status();
    let users = (status.size + status.waiting).saturating_sub(status.available);
    // The pool makes a connection for no more than that. Others wait for one that is in use, and that need not go on.
    if users > status.max_size {
        return Ok(getting.await?);
    }
    // One to a server that accepts and says nothing would never end, and keep its place in the pool.
    Ok(tokio::spawn(tokio::time::timeout(LONGEST, getting)).await???)
}

/// How long a connection may take to be made. A server under load may need seconds; a start that takes longer has met a
/// server or a proxy that does not go on with it.
#[cfg(feature = "deadpool")]
const LONGEST: std::time::Duration = std::time::Duration::from_secs(30);

/// A pool that prepares each statement once for each connection, so that the server need not plan it for each decision.
///
/// PgBouncer passes on prepared statements in transaction mode from 1.21 on, if its `max_prepared_statements` is not 0. Without
/// that, statements fail that were prepared on another connection: pass it the pool itself.
#[cfg(feature = "deadpool")]
#[cfg_attr(docsrs, doc(cfg(feature = "deadpool")))]
#[derive(Debug, Clone)]
pub struct Prepared(pub deadpool_postgres::Pool);

#[cfg(feature = "deadpool")]
impl Connections for Prepared {
    async fn query(
        &self,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, EngineError> {
        if parameters.is_empty() {
            return Connections::query(&self.0, statement, parameters).await;
        }
        let client = client(&self.0).await?;
        let types: Vec<Type> = parameters.iter().map(|(_, kind)| kind.clone()).collect();
        let prepared = client.prepare_typed_cached(statement, &types).await?;
        let values: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|(value, _)| *value).collect();
        Ok(client.query(&prepared, &values).await?)
    }
}

#[cfg(all(test, feature = "deadpool"))]
mod tests {
    use std::time::Duration;

    use deadpool_postgres::{Manager, Pool};
    use tokio::net::TcpListener;
    use tokio::time::timeout;
    use tokio_postgres::{Config, NoTls};

    use super::*;

    /// A server that accepts and says nothing, such as a proxy without a server behind it.
    #[tokio::test(start_paused = true)]
    async fn a_connection_that_hangs_while_it_is_made_gives_its_place_back() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let mut config = Config::new();
        let port = listener.local_addr().expect("an address").port();
        config.host("127.0.0.1").port(port).user("nobody");
        let pool = Pool::builder(Manager::new(config, NoTls)).max_size(1).build().expect("a pool");
        let mut accepted = Vec::new();
        for _ in 0..2 {
            // It is given up at the deadline of a decision, and goes on by itself.
            let given_up = timeout(Duration::from_millis(50), client(&pool)).await;
            assert!(given_up.is_err());
            let next = timeout(Duration::from_secs(1), listener.accept()).await;
            accepted.push(next.expect("a connection in time").expect("a connection"));
            tokio::time::sleep(LONGEST).await;
        }
    }
}
