//! [`Needs`]: how a guest asks to see objects that are not its children, and reads the answers.

use serde_json::Value;

use crate::{Need, NeedAnswer, ObjectsNeed};

/// Collects what a guest asks to see, and finds the answers in the request.
///
/// A guest asks for everything in every call, in any order. An object that was not answered yet reads as absent. In that case the host uses
/// only the needs of the response, and calls the guest again with the answers.
///
/// ```
/// use pintle_guest::{Needs, ObjectsNeed, Response};
///
/// # let answers = Vec::new();
/// let mut needs = Needs::new(&answers); // &request.needs
/// let settings = needs.object(ObjectsNeed::named("v1", "ConfigMap", "settings").with_fields(&["data"]));
/// let theme = settings.and_then(|settings| settings["data"]["theme"].as_str());
/// // ... and so on, as if everything had been there:
/// # let _ = theme;
/// let response = Response { needs: needs.asked(), ..Response::default() };
/// # assert_eq!(response.needs.len(), 1);
/// ```
#[derive(Debug)]
pub struct Needs<'a> {
    answers: &'a [NeedAnswer],
    asked: Vec<Need>,
    answered: bool,
}

impl<'a> Needs<'a> {
    /// A collection without needs. `answers` are those of the request.
    pub fn new(answers: &'a [NeedAnswer]) -> Self {
        Self { answers, asked: Vec::new(), answered: true }
    }

    /// Asks for objects. Returns an empty slice if there are none, or if the need was not answered yet.
    pub fn objects(&mut self, need: ObjectsNeed) -> &'a [Value] {
        self.ask(Need::Objects(need)).map_or(&[], |answer| &answer.objects)
    }

    /// Asks for one object.
    pub fn object(&mut self, need: ObjectsNeed) -> Option<&'a Value> {
        self.objects(need).first()
    }

    /// Asks for the time (RFC 3339, UTC), rounded down to this step in seconds. The root is reconciled again at the next step.
    pub fn time(&mut self, step_seconds: u32) -> Option<&'a str> {
        self.ask(Need::Clock { step_seconds })?.time.as_deref()
    }

    /// Asks whether this moment (RFC 3339) was reached. The root is reconciled again when it is.
    pub fn reached(&mut self, deadline: impl Into<String>) -> bool {
        self.ask(Need::Deadline(deadline.into())).and_then(|answer| answer.reached).unwrap_or(false)
    }

    /// Whether everything asked so far was answered. If not, the host discards the rest of the answer, so a guest may return at once.
    pub fn all_answered(&self) -> bool {
        self.answered
    }

    /// Everything that was asked, for the response.
    pub fn asked(self) -> Vec<Need> {
        self.asked
    }

    fn ask(&mut self, need: Need) -> Option<&'a NeedAnswer> {
        let answer = self.answers.iter().find(|answer| answer.need == need);
        self.answered &= answer.is_some();
        if !self.asked.contains(&need) {
            self.asked.push(need);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn named(name: &str) -> ObjectsNeed {
        ObjectsNeed::named("v1", "ConfigMap", name)
    }

    #[test]
    fn what_was_answered_is_found_whatever_the_order() {
        let answer = |need: Need| NeedAnswer { need, ..NeedAnswer::default() };
        let object = json!({"metadata": {"name": "b"}});
        let answers = [
            NeedAnswer {
                time: Some("2000-01-01T00:00:00Z".into()),
                ..answer(Need::Clock { step_seconds: 60 })
            },
            NeedAnswer { objects: vec![object.clone()], ..answer(Need::Objects(named("b"))) },
            answer(Need::Objects(named("a"))),
            NeedAnswer { reached: Some(true), ..answer(Need::Deadline("1999-01-01T00:00:00Z".into())) },
        ];
        let mut needs = Needs::new(&answers);
        assert_eq!(needs.object(named("a")), None);
        assert_eq!(needs.object(named("b")), Some(&object));
        assert!(needs.reached("1999-01-01T00:00:00Z"));
        assert_eq!(needs.time(60), Some("2000-01-01T00:00:00Z"));
        assert!(needs.all_answered());
        assert_eq!(needs.asked().len(), 4);
    }

    #[test]
    fn what_was_not_answered_reads_as_absent_and_is_asked_once() {
        let mut needs = Needs::new(&[]);
        assert!(needs.objects(named("a")).is_empty() && needs.objects(named("a")).is_empty());
        assert!(!needs.reached("2000-01-01T00:00:00Z") && needs.time(1).is_none());
        assert!(!needs.all_answered());
        let deadline = Need::Deadline("2000-01-01T00:00:00Z".into());
        assert_eq!(needs.asked(), [Need::Objects(named("a")), deadline, Need::Clock { step_seconds: 1 }]);
    }
}
