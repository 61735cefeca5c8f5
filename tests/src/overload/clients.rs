use super::server::Request;
use super::{CHEAP, DEAR, PATIENCE};
use crate::random::{Random, spread};

/// Clients that are alike, and come at random.
#[derive(Debug, Clone)]
pub struct Group {
    /// What their requests cost in a second, in seconds of the core.
    pub load: f64,
    /// 0 is the most critical.
    pub class: u8,
    /// What a request costs, in microseconds, each as likely.
    pub costs: Vec<u64>,
    /// Whose requests they are.
    pub flow: Flow,
    /// What the throttle predicts their cost by.
    pub route: Route,
    /// The client leaves so long after it came, in microseconds.
    pub patience: u64,
    /// The client hangs up so long after its request was started, in microseconds.
    pub hangs_up: Option<u64>,
}

/// Whose requests those of a group are.
#[derive(Debug, Clone, Copy)]
pub enum Flow {
    /// Of one client.
    One(u64),
    /// Of this many clients, the first of which has this number.
    Many(u64, u64),
    /// Each of another one.
    Minted,
}

/// What the requests of a group look like to the predictor.
#[derive(Debug, Clone, Copy)]
pub enum Route {
    /// All alike.
    One(u64),
    /// Cheap ones and dear ones are on routes of their own.
    ByCost,
    /// None is like another.
    Minted,
}

impl Group {
    /// Cheap requests of one client, on one route, in the most critical class.
    pub fn new(load: f64) -> Self {
        Self {
            load,
            class: 0,
            costs: vec![CHEAP],
            flow: Flow::One(0),
            route: Route::One(1),
            patience: PATIENCE,
            hangs_up: None,
        }
    }

    fn mean_cost(&self) -> f64 {
        self.costs.iter().sum::<u64>() as f64 / self.costs.len() as f64
    }

    /// Requests in a microsecond.
    fn rate(&self) -> f64 {
        self.load / self.mean_cost()
    }
}

/// All clients of a server.
#[derive(Debug)]
pub struct Clients {
    pub(super) groups: Vec<Group>,
    random: Random,
    minted: u64,
}

/// Four of five requests need 1 ms of the core, one needs 20 ms; clients leave after a second; 10, 30, 30 and 30 % are of
/// the four classes, each of which is a group. `load` is how many times what the core can do.
pub fn four_classes(load: f64) -> Clients {
    let group = |(class, share)| Group {
        class,
        costs: vec![CHEAP, CHEAP, CHEAP, CHEAP, DEAR],
        route: Route::ByCost,
        ..Group::new(load * share)
    };
    Clients::new([(0, 0.1), (1, 0.3), (2, 0.3), (3, 0.3)].map(group))
}

impl Clients {
    /// Some groups.
    pub fn new(groups: impl Into<Vec<Group>>) -> Self {
        Self { groups: groups.into(), random: Random(0x5eed), minted: 1 << 32 }
    }

    /// The next request of a group that comes at `now`, and when the one after it comes.
    pub(super) fn next(&mut self, group: usize, now: u64) -> (Request, u64) {
        let Group { class, costs, flow, route, patience, hangs_up, .. } = &self.groups[group];
        let cost = costs[(self.random.number() % costs.len() as u64) as usize];
        self.minted += 1;
        let flow = match flow {
            Flow::One(flow) => *flow,
            Flow::Many(first, flows) => first + self.random.number() % flows,
            Flow::Minted => self.minted,
        };
        let route = match route {
            Route::One(route) => *route,
            Route::ByCost => cost,
            Route::Minted => self.minted,
        };
        let request = Request {
            group,
            class: *class,
            cost,
            flow: spread(flow),
            route: spread(route),
            arrived: now,
            patience: *patience,
            hangs_up: *hangs_up,
            has_left: false,
        };
        (request, now + self.gap(group))
    }

    pub(super) fn gap(&mut self, group: usize) -> u64 {
        self.random.gap(self.groups[group].rate()) as u64
    }
}
