use metrics::{SharedString, Unit, counter, describe_counter, describe_gauge, gauge};

use super::snapshot::{ClassSnapshot, Snapshot};
use super::throttle::Throttle;
use crate::scheduler::ShedReason;

impl Throttle {
    /// Records the present state of the throttle as metrics. Call it before metrics are read, or every few seconds.
    ///
    /// The label `throttle` is the [name](super::ThrottleBuilder::named) of the throttle, so that several can be told
    /// apart. Counters and gauges are `sluicegate_throttle_…`; the histogram `sluicegate_throttle_wait_seconds` is
    /// recorded as requests are started, without this call.
    ///
    /// ```
    /// use std::time::Duration;
    /// use sluicegate_throttle::Throttle;
    ///
    /// let throttle = Throttle::builder().named("shop").in_flight(9).queue(Duration::from_secs(1)).build()?;
    /// // In the handler of `/metrics`, before the text is rendered:
    /// throttle.record_metrics();
    /// # Ok::<(), sluicegate_throttle::ConfigError>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn record_metrics(&self) {
        describe();
        let snapshot = self.snapshot();
        let throttle = SharedString::from(snapshot.name.clone());
        snapshot.classes.iter().for_each(|class| record_class(&throttle, class));
        record_queue(&throttle, &snapshot);
        record_capacity(&throttle, &snapshot);
        let count = |name, value| counter!(name, "throttle" => throttle.clone()).absolute(value);
        count("sluicegate_throttle_predicted_cost_total", snapshot.predicted_cost);
        count("sluicegate_throttle_actual_cost_total", snapshot.actual_cost);
        count("sluicegate_throttle_prediction_error_total", snapshot.prediction_error);
        let unread = snapshot.unreadable;
        for (what, value) in
            [("class", unread.classes), ("deadline", unread.deadlines), ("key", unread.keys)]
        {
            let throttle = throttle.clone();
            counter!("sluicegate_throttle_unreadable_total", "throttle" => throttle, "what" => what)
                .absolute(value);
        }
    }
}

fn record_class(throttle: &SharedString, class: &ClassSnapshot) {
    let ClassSnapshot { requests, cost, counts, .. } = class;
    let name = SharedString::from(class.name.clone());
    let labels = || [("throttle", throttle.clone()), ("class", name.clone())];
    counter!("sluicegate_throttle_offered_total", &labels()).absolute(counts.offered);
    counter!("sluicegate_throttle_queued_total", &labels()).absolute(counts.queued);
    counter!("sluicegate_throttle_left_total", &labels()).absolute(counts.cancelled);
    counter!("sluicegate_throttle_cost_total", &labels()).absolute(counts.cost);
    let waited = counts.started.saturating_sub(counts.at_once);
    for (how, value) in [("at_once", counts.at_once), ("waited", waited)] {
        let [throttle, class] = labels();
        let labels = [throttle, class, ("how", how.into())];
        counter!("sluicegate_throttle_started_total", &labels).absolute(value);
    }
    for reason in ShedReason::ALL {
        let [throttle, class] = labels();
        let labels = [throttle, class, ("reason", reason.as_str().into())];
        counter!("sluicegate_throttle_shed_total", &labels).absolute(counts.shed_for(reason));
    }
    gauge!("sluicegate_throttle_queue_requests", &labels()).set(*requests as f64);
    gauge!("sluicegate_throttle_queue_cost", &labels()).set(*cost as f64);
}

fn record_queue(throttle: &SharedString, snapshot: &Snapshot) {
    let set = |name, value: f64| gauge!(name, "throttle" => throttle.clone()).set(value);
    set("sluicegate_throttle_queue_bound", snapshot.queue_bound as f64);
    set("sluicegate_throttle_admitted_classes", snapshot.admitted_classes as f64);
}

fn record_capacity(throttle: &SharedString, snapshot: &Snapshot) {
    let set = |name, value: f64| gauge!(name, "throttle" => throttle.clone()).set(value);
    set("sluicegate_throttle_running", snapshot.running as f64);
    let limit = snapshot.limit.map(|limit| limit as f64);
    set("sluicegate_throttle_capacity", limit.or(snapshot.cost_per_second).unwrap_or_default());
    for partition in &snapshot.partitions {
        let labels = [
            ("throttle", throttle.clone()),
            ("partition", SharedString::from(partition.name.clone())),
        ];
        let set = |name, value: usize| gauge!(name, &labels).set(value as f64);
        set("sluicegate_throttle_partition_running", partition.running);
        set("sluicegate_throttle_partition_waiting", partition.waiting);
        set("sluicegate_throttle_partition_guaranteed", partition.guaranteed);
    }
    if let Some(baseline) = snapshot.baseline {
        set("sluicegate_throttle_baseline_seconds", baseline.as_secs_f64());
    }
}

fn describe() {
    let count = |name, text: &'static str| describe_counter!(name, Unit::Count, text);
    count("sluicegate_throttle_offered_total", "Requests that came to the throttle, by class.");
    count("sluicegate_throttle_queued_total", "Requests that were put into the queue, by class.");
    count(
        "sluicegate_throttle_started_total",
        "Requests that were started, by class, and by whether they waited.",
    );
    count("sluicegate_throttle_shed_total", "Requests that were shed, by class and reason.");
    count(
        "sluicegate_throttle_left_total",
        "Requests whose client had gone before they were started, by class.",
    );
    count(
        "sluicegate_throttle_cost_total",
        "What requests that have ended cost, in the unit of the throttle, by class.",
    );
    count("sluicegate_throttle_predicted_cost_total", "The predicted cost of measured requests.");
    count("sluicegate_throttle_actual_cost_total", "The measured cost of those.");
    count(
        "sluicegate_throttle_prediction_error_total",
        "The differences of predicted and measured cost, added up in both directions.",
    );
    count(
        "sluicegate_throttle_unreadable_total",
        "Requests with a class, a deadline or a key that could not be read, so that the default was used.",
    );
    let level = |name, text: &'static str| describe_gauge!(name, Unit::Count, text);
    level("sluicegate_throttle_queue_requests", "Requests that wait, by class.");
    level("sluicegate_throttle_queue_cost", "The cost of requests that wait, by class.");
    level("sluicegate_throttle_queue_bound", "The cost that the queue holds.");
    level(
        "sluicegate_throttle_admitted_classes",
        "How many classes are admitted at present, the most critical first.",
    );
    level("sluicegate_throttle_running", "Requests that run.");
    level(
        "sluicegate_throttle_capacity",
        "How many requests may run at once, or, where the capacity is a rate, the cost in a second.",
    );
    level("sluicegate_throttle_partition_running", "Requests of a partition that run.");
    level("sluicegate_throttle_partition_waiting", "Requests of a partition that wait.");
    level(
        "sluicegate_throttle_partition_guaranteed",
        "How many requests of a partition may run whatever the others do.",
    );
    describe_gauge!(
        "sluicegate_throttle_baseline_seconds",
        Unit::Seconds,
        "The time that an adaptive limit takes for that of an unloaded server."
    );
}
