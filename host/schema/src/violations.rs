//! Everything that is wrong with an object, told at once.

use pintle_wit::Failure;

/// The most violations that are told.
const TOLD_MAX: usize = 10;

/// What was found so far.
#[derive(Debug, Default)]
pub struct Violations {
    told: Vec<Failure>,
    /// How many there are besides.
    more: usize,
}

impl Violations {
    /// Adds one.
    pub fn push(&mut self, failure: Failure) {
        if self.told.len() < TOLD_MAX {
            self.told.push(failure);
        } else {
            self.more += 1;
        }
    }

    /// Whether the field at a path was found at fault.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.told.iter().any(|failure| failure.path.as_deref() == Some(path))
    }

    /// Whether there are none.
    ///
    /// # Errors
    /// One failure of all of them: the first, with the others in its message.
    pub fn into_result(self) -> Result<(), Failure> {
        let Self { told, more } = self;
        let mut told = told.into_iter();
        let Some(mut first) = told.next() else { return Ok(()) };
        for other in told {
            first.message.push_str(&format!("; {}", other.where_and_why()));
        }
        if more > 0 {
            first.message.push_str(&format!("; and {more} more"));
        }
        Err(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_violations_are_told_and_the_others_counted() {
        let mut violations = Violations::default();
        for index in 0..TOLD_MAX + 2 {
            violations.push(Failure::terminal("Invalid", "is wrong").at(format!("spec.a{index}")));
        }
        let said = violations.into_result().unwrap_err().to_string();
        assert!(said.starts_with("Invalid: spec.a0: is wrong; spec.a1: is wrong; spec.a2: "), "{said}");
        assert!(said.ends_with("; spec.a9: is wrong; and 2 more"), "{said}");
        assert_eq!(Violations::default().into_result(), Ok(()));
    }
}
