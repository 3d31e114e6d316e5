//! A position in a schema or in a config. It is written out only for an error.

/// A position. Each step is in the stack frame of the call that took it.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: PathStep<'a>,
}

#[derive(Clone, Copy, Debug)]
enum PathStep<'a> {
    Field(&'a str),
    Index(usize),
}

/// The longest path that is shown, in characters.
const SHOWN_MAX: usize = 512;

impl<'a> At<'a> {
    pub(super) fn root(name: &'a str) -> Self {
        Self { parent: None, step: PathStep::Field(name) }
    }

    pub(super) fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: PathStep::Field(name) }
    }

    pub(super) fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: PathStep::Index(index) }
    }

    /// Whether this is the config itself.
    pub(super) fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// In the form in which Kubernetes writes paths: `spec.config.ports[0].name`.
    pub(super) fn path(&self) -> String {
        let mut steps = vec![self.step];
        let mut next = self.parent;
        while let Some(at) = next {
            steps.push(at.step);
            next = at.parent;
        }
        let mut path = String::new();
        for step in steps.into_iter().rev() {
            match step {
                PathStep::Index(index) => path.push_str(&format!("[{index}]")),
                PathStep::Field(name) if path.is_empty() => path.push_str(name),
                PathStep::Field(name) => {
                    // A longer name is cut anyway.
                    let name: String = name.chars().take(SHOWN_MAX).collect();
                    match name.contains(['.', '/']) {
                        true => path.push_str(&format!("[{name}]")),
                        false => path.push_str(&format!(".{name}")),
                    }
                }
            }
        }
        shortened(path, SHOWN_MAX)
    }
}

/// A text of at most this many characters. A longer text is cut, and ends with three dots.
pub(super) fn shortened(text: String, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text,
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
    }
}
