//! Why a root is not ready.

use pintle_wit::ObjectRef;

use super::{Pass, answer::ChildState, key::Key, refusals::StandingRefusal};
use crate::{
    conditions::{self, Blocker},
    gate::is_word,
    object,
    observed::Observed,
    readiness::Ready,
    reasons, text,
};

/// How much a condition repeats of what the API server says of a child, in bytes. Behind it there is room for what to do.
const SAID_MAX: usize = 2048;
/// How many unwanted children a condition names that may be in the way of another one.
const UNWANTED_MAX: usize = 3;

/// Why a root is not ready, the most important reason first.
pub(super) type Blockers = Vec<Blocker>;

impl Pass {
    /// Why the root is not ready, the most important reason first: no answer, an uncertain write, refusals, waiting children or stages,
    /// children left to prune, children that are not ready, and the guest's own conditions.
    pub(super) fn blockers(&self) -> Blockers {
        let mut blockers = Vec::new();
        let mut add = |reason: &str, message: String, terminal: bool| {
            blockers.push(Blocker {
                reason: reason.into(),
                message: conditions::message(&message),
                terminal,
            });
        };
        if let Some(failure) = &self.failure {
            let at = failure.path.as_ref().map_or_else(String::new, |path| format!("{path}: "));
            let way_out = if object::is_deleting(&self.root) {
                self.way_out()
            } else if failure.reason == reasons::TRAP {
                recording(&object::reference(&self.root))
            } else {
                String::new()
            };
            let message = format!("{at}{}{way_out}", failure.message);
            add(&word(&failure.reason, reasons::GUEST_FAILED), message, !failure.retry);
            return blockers;
        }
        if let Some(message) = self.slowed() {
            add(reasons::THROTTLED, message, false);
        }
        if let Some(error) = &self.unsure {
            add(&error.reason_word(), error.to_string(), false);
        }
        for standing in self.memory.refusals.blocking(self.answer.as_ref().map(|answer| &answer.allowed)) {
            let refusal = &standing.refusal;
            let message = match refusal.reason.as_str() {
                reasons::ADOPTION_CONFLICT => refusal.message.clone(),
                _ => {
                    let said = text::clean(&refusal.message, SAID_MAX);
                    format!("{}: {said}{}", refusal.child, self.remedy(standing))
                }
            };
            add(&word(&refusal.reason, reasons::CHILD_REFUSED), message, !standing.retry);
        }
        for (reference, error) in &self.refused_patches {
            let message = match error.code {
                404 if error.reason == reasons::PATCH_TARGET_MISSING => error.message.clone(),
                _ => format!("the patch of {reference} is refused: {error}"),
            };
            let reason = if error.code == 409 { reasons::PATCH_CONFLICT.into() } else { error.reason_word() };
            add(&word(&reason, reasons::PATCH_REFUSED), message, !error.depends_on_others());
        }
        if let Some((reason, message)) = self.eviction_blocker() {
            add(&reason, message, false);
        }
        if let Some(answer) = &self.answer {
            for state in &answer.states {
                if let ChildState::Held(message) = state {
                    add(reasons::CHILD_HELD, message.clone(), false);
                }
            }
        }
        if let Some(message) = self.stage_waiting() {
            add(reasons::STAGE_WAITING, message, false);
        }
        if self.answer.is_some() || self.memory.memo.is_some() {
            let wanted = self.wanted();
            let is_wanted = |key: &Key| match (&self.answer, &self.memory.memo) {
                (None, Some(memo)) => memo.wants(key),
                _ => wanted.contains(key),
            };
            let left = self.live.iter().filter(|(key, child)| self.owns(child) && !is_wanted(key));
            for (_, child) in left {
                let doing =
                    if child.deleting { "is being deleted" } else { "is no longer wanted and still there" };
                add(reasons::PRUNING, format!("{} {doing}", child.reference), false);
            }
        }
        if object::is_deleting(&self.root) {
            add(reasons::DELETING, "the guest has not finished cleaning up".into(), false);
        }
        let (mut waiting, mut fails) = (Vec::new(), false);
        for (reference, ready) in self.readiness() {
            fails |= matches!(ready, Ready::Failed(_));
            match ready {
                Ready::Yes => {}
                Ready::Waiting(message) | Ready::Failed(message) => {
                    waiting.push(format!("{reference}: {message}"))
                }
            }
        }
        if !waiting.is_empty() {
            add(reasons::CHILD_NOT_READY, waiting.join("; "), fails);
        }
        for condition in self.guest_status().1.iter().filter(|condition| condition.blocks_ready) {
            add(&condition.reason, condition.message.clone(), false);
        }
        blockers
    }

    /// What ends the refusal of a child, where the words of the API server do not say it.
    fn remedy(&self, standing: &StandingRefusal) -> String {
        let child = &standing.refusal.child;
        if standing.immutable {
            return format!(
                "; what is there cannot become this: let the guest name it otherwise, or delete it and all that it holds, and it is \
                 made anew: {}",
                kubectl("delete", child)
            );
        }
        if standing.refusal.reason == reasons::NAMESPACE_TERMINATING && self.is_held() {
            return self.way_out();
        }
        let is_alike =
            |other: &ObjectRef| (other.kind().group(), &other.kind) == (child.kind().group(), &child.kind);
        let mut unwanted = self.prunable();
        unwanted.retain(|other| standing.contention && is_alike(other));
        unwanted.truncate(UNWANTED_MAX);
        if unwanted.is_empty() {
            return String::new();
        }
        let names: Vec<String> = unwanted.iter().map(ToString::to_string).collect();
        let commands: Vec<String> = unwanted.iter().map(|other| kubectl("delete", other)).collect();
        format!(
            "; {} may be in its way, is no longer wanted, and is pruned when nothing is refused any more; to delete it now: {}",
            names.join(" or "),
            commands.join(" or ")
        )
    }

    /// A hint how an administrator releases a root whose guest cannot finish.
    fn way_out(&self) -> String {
        let command = kubectl("annotate", &object::reference(&self.root));
        format!("; to let the root go without its guest: {command} pintle.dev/release=true")
    }

    /// Every wanted child that exists, and whether it is ready.
    fn readiness(&self) -> Vec<(ObjectRef, Ready)> {
        let owned = |child: &&Observed| self.owns(child);
        let ready = |child: &Observed, rule| (child.reference.clone(), child.readiness(rule));
        match (&self.answer, &self.memory.memo) {
            (Some(answer), _) => {
                let wanted = answer.allowed.children().iter();
                wanted
                    .filter_map(|child| {
                        let live = self.live.get(&Key::from(child.reference())).filter(owned)?;
                        Some(ready(live, child.readiness()))
                    })
                    .collect()
            }
            (None, Some(memo)) => {
                let wanted = memo.wanted(None, self.live.iter()).into_iter();
                wanted.filter(|(live, _)| owned(live)).map(|(live, rule)| ready(live, rule)).collect()
            }
            (None, None) => Vec::new(),
        }
    }
}

/// A command about one object.
pub(super) fn kubectl(verb: &str, object: &ObjectRef) -> String {
    let (place, kind) = on_command_line(object);
    format!("kubectl {verb}{place} {kind} {}", object.name)
}

/// Begins the hint how to see the panic of a guest whose root is in a cluster.
pub const RECORDING: &str = "; to run it beside the guest's sources, with the message: ";

/// The command that makes a golden case of a root, at which its guest trapped.
pub fn recording(root: &ObjectRef) -> String {
    let (place, kind) = on_command_line(root);
    format!("{RECORDING}pintle record{place} {kind}/{name} > cases/{name}.yaml", name = root.name)
}

/// The flag for the namespace of an object, and its kind. The kind has its group, since a kind of the same name may be in another one.
fn on_command_line(object: &ObjectRef) -> (String, String) {
    let place = object.namespace.as_ref().map_or_else(String::new, |namespace| format!(" -n {namespace}"));
    let kind = object.kind();
    let group = if kind.group().is_empty() { String::new() } else { format!(".{}", kind.group()) };
    (place, format!("{}{group}", object.kind.to_lowercase()))
}

/// A reason that the API accepts: one CamelCase word, or else the fallback.
fn word(reason: &str, otherwise: &str) -> String {
    if is_word(reason) { reason.into() } else { otherwise.into() }
}
