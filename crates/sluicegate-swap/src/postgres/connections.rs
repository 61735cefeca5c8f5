use std::sync::Arc;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use crate::engine::EngineError;

/// Where statements are sent: a client, or a pool of them.
///
/// For another pool than that of `deadpool-postgres`, take a client out of it and call its `query_typed`. Or keep prepared
/// statements: the texts of those with parameters are always the same three.
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
        Ok(self.get().await?.query_typed(statement, parameters).await?)
    }
}

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
        let client = self.0.get().await?;
        let types: Vec<Type> = parameters.iter().map(|(_, kind)| kind.clone()).collect();
        let prepared = client.prepare_typed_cached(statement, &types).await?;
        let values: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|(value, _)| *value).collect();
        Ok(client.query(&prepared, &values).await?)
    }
}
