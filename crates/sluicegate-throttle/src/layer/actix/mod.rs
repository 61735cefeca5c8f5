//! The middleware for actix-web: hands requests to the parts that decide, and responses to those that measure.

mod future;

use std::future::{Ready, ready};
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::Error;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use sluicegate_actix::adapter::RequestView;
use sluicegate_actix::response::Body;

pub use self::future::ActixFuture;
use self::future::Inside;
use crate::layer::requests::{Describe, Requests};
use crate::layer::throttle_layer::ThrottleLayer;

impl<I, R, B> Transform<I, ServiceRequest> for ThrottleLayer<R>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    R: for<'a> Describe<RequestView<'a>> + Clone + 'static,
    B: MessageBody,
{
    type Response = ServiceResponse<EitherBody<Body<B>>>;
    type Error = Error;
    type Transform = ActixService<I, R>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, service: I) -> Self::Future {
        ready(Ok(ActixService::new(service, self)))
    }
}

/// A service of actix-web behind a [`ThrottleLayer`].
#[derive(Debug)]
pub struct ActixService<I, R = Requests> {
    inside: Rc<Inside<I, R>>,
}

impl<I, R: Clone> ActixService<I, R> {
    pub(in crate::layer) fn new(service: I, layer: &ThrottleLayer<R>) -> Self {
        Self { inside: Rc::new(Inside { service, layer: layer.clone() }) }
    }
}

impl<I, R, B> Service<ServiceRequest> for ActixService<I, R>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    R: for<'a> Describe<RequestView<'a>> + 'static,
    B: MessageBody,
{
    type Response = ServiceResponse<EitherBody<Body<B>>>;
    type Error = Error;
    type Future = ActixFuture<I, R>;

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inside.service.poll_ready(cx)
    }

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let dispatch = self.inside.layer.admit(&RequestView::new(request.request()));
        ActixFuture::new(dispatch, request, Rc::clone(&self.inside))
    }
}
