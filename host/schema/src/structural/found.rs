//! What a validation finds, and the steps that it, or setting defaults, has left.

use pintle_wit::Cause;
use serde_json::Value;

/// There are no steps left.
#[derive(Debug)]
pub(crate) struct OutOfSteps;

pub(crate) type Counted<T = ()> = Result<T, OutOfSteps>;

/// The bytes of a text that are read in a step.
const BYTES_A_STEP: usize = 16;

/// How many steps it takes to copy what is read in one. A copy takes memory: twenty thousand values have up to 16 MiB.
const STEPS_A_COPY: usize = 500;

/// What a validation has found so far.
pub(super) struct Found {
    pub(super) causes: Vec<Cause>,
    left: u64,
}

impl Found {
    pub(super) fn new(causes: Vec<Cause>, steps: u64) -> Self {
        Self { causes, left: steps }
    }

    pub(super) fn spend(&mut self, steps: usize) -> Counted {
        self.left = self.left.checked_sub(steps as u64).ok_or(OutOfSteps)?;
        Ok(())
    }

    /// Spends what it takes to look at a place, whose path is written out.
    pub(super) fn look_at(&mut self, path: &str) -> Counted {
        self.spend(1 + path.len() / BYTES_A_STEP)
    }

    /// Spends what it takes to read a value with all that is in it.
    pub(super) fn read(&mut self, value: &Value) -> Counted {
        match value {
            Value::String(text) => self.spend(text.len() / BYTES_A_STEP)?,
            Value::Array(items) => items.iter().try_for_each(|item| self.read(item))?,
            Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
                self.spend(name.len() / BYTES_A_STEP)?;
                self.read(value)
            })?,
            _ => {}
        }
        self.spend(1)
    }

    /// Copies a value, if there are as many steps left as that takes.
    pub(super) fn copy(&mut self, value: &Value) -> Counted<Value> {
        let before = self.left;
        self.read(value)?;
        let read = (before - self.left) as usize;
        self.spend(read.saturating_mul(STEPS_A_COPY))?;
        Ok(value.clone())
    }

    /// Adds an error. It is kept, so that each byte is a step.
    pub(super) fn push(&mut self, cause: Cause) -> Counted {
        self.spend(cause.field.len() + cause.message.len())?;
        self.causes.push(cause);
        Ok(())
    }

    /// What a part of the validation finds, which is not added to the rest.
    pub(super) fn aside(&mut self, part: impl FnOnce(&mut Self) -> Counted) -> Counted<Vec<Cause>> {
        let rest = std::mem::take(&mut self.causes);
        part(self)?;
        Ok(std::mem::replace(&mut self.causes, rest))
    }
}
