//! The throttle on simulated servers.

mod adaptive;
mod attacks;
mod documented;
mod goodput;
mod mixed;
