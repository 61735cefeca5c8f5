//! The metrics of a store.

use metrics::{SharedString, Unit, counter, describe_counter, describe_gauge, gauge};

use super::Memory;

impl Memory {
    /// Sets the gauges of this store, with the label `store`. Call it when metrics are scraped: nothing else sets
    /// them, because there is no background thread, and decisions should not pay for it.
    ///
    /// - `sluicegate_memory_keys`: rows in use, from [`about_len`](Self::about_len), in bounded time;
    /// - `sluicegate_memory_capacity`: the number of keys that the store has room for;
    /// - `sluicegate_memory_turned_away_total`: requests that were not counted by a limit, or refused, because
    ///   there was no room for the key;
    /// - `sluicegate_memory_file_refused_total`, if the store is kept in a file: 1 if the file could not be read at the
    ///   start and was moved aside;
    /// - `sluicegate_memory_file_failed_writes_total`, then too: how often the file could not be written;
    /// - `sluicegate_memory_counted_together_total`: decisions with rows that are shared by keys without room.
    ///
    /// A row of a limited key is never evicted. [`turned_away`](Self::turned_away) counts the cases in which other
    /// limiters would have evicted one.
    ///
    /// ```
    /// use sluicegate::Memory;
    ///
    /// let store = Memory::new();
    /// // In the handler of `/metrics`, before rendering:
    /// store.record_metrics("api");
    /// ```
    pub fn record_metrics(&self, store: impl Into<SharedString>) {
        describe();
        let store = store.into();
        gauge!("sluicegate_memory_keys", "store" => store.clone()).set(self.about_len() as f64);
        gauge!("sluicegate_memory_capacity", "store" => store.clone()).set(self.capacity() as f64);
        counter!("sluicegate_memory_turned_away_total", "store" => store.clone())
            .absolute(self.turned_away());
        #[cfg(feature = "file")]
        if let Some(keeper) = &self.1 {
            let [refused, failed] = keeper.failures();
            counter!("sluicegate_memory_file_refused_total", "store" => store.clone())
                .absolute(refused);
            counter!("sluicegate_memory_file_failed_writes_total", "store" => store.clone())
                .absolute(failed);
        }
        counter!("sluicegate_memory_counted_together_total", "store" => store)
            .absolute(self.counted_together());
    }
}

fn describe() {
    describe_gauge!(
        "sluicegate_memory_keys",
        Unit::Count,
        "About how many rows are in use: one for each key and limit that has spent and not recovered."
    );
    describe_gauge!("sluicegate_memory_capacity", Unit::Count, "Keys that there is room for.");
    describe_counter!(
        "sluicegate_memory_turned_away_total",
        Unit::Count,
        "Requests that a limit did not count, because there was no room for the key; none is evicted for them."
    );
    #[cfg(feature = "file")]
    {
        describe_counter!(
            "sluicegate_memory_file_refused_total",
            Unit::Count,
            "Files of counts that could not be read at the start and were moved aside."
        );
        describe_counter!(
            "sluicegate_memory_file_failed_writes_total",
            Unit::Count,
            "How often the file of counts could not be written; it is tried again each second."
        );
    }
    describe_counter!(
        "sluicegate_memory_counted_together_total",
        Unit::Count,
        "Decisions by rows that several keys share, because there was no room for a row of each."
    );
}
