//! The throttle on simulated servers.

mod adaptive;
mod attacks;
mod goodput;
mod mixed;
