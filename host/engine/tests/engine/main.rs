//! The engine, given everything that a guest can do to it.

// Marked as tests, so that helpers beside the tests may unwrap as the tests do.
#[cfg(test)]
mod call;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod load;
#[cfg(test)]
mod support;
#[cfg(test)]
mod views;
