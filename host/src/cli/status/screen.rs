//! What `pintle status` shows, and in which order.

use jiff::Timestamp;
use kube::ResourceExt;
use pintle_api::{Module, ModuleUser, Reconciler, View};
use pintle_core::{
    reasons::{self, Object},
    text,
};
use pintle_wit::{Condition, ConditionStatus};

use super::super::{
    host::{Gateway, Host},
    output,
    readiness::Readiness,
    roots::{self, Root, Unread},
    table::{Table, age, wrapped},
    users::Users,
};

/// How many roots are shown with everything else.
const ROOTS_SHOWN: usize = 10;

/// How much of a message is shown with everything else, in bytes.
const MESSAGE_BYTES: usize = 300;

/// Everything that was read.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The host.
    pub(super) host: Host,
    /// The gateway, if there are Views that it should serve.
    pub(super) gateway: Option<Gateway>,
    /// The Reconcilers, sorted by name.
    pub(super) reconcilers: Vec<Reconciler>,
    /// The Views, sorted by name.
    pub(super) views: Vec<View>,
    /// The Modules, sorted by name.
    pub(super) modules: Vec<Module>,
    /// Who uses the Modules.
    pub(super) users: Users,
    /// The roots of the Reconcilers.
    pub(super) roots: Vec<Root>,
    /// The kinds of roots that could not be read.
    pub(super) unread: Vec<Unread>,
}

/// What somebody asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Everything, on one screen.
    Everything,
    /// One Reconciler, with all of its roots that are not ready, or one View.
    One,
}

/// What is shown.
#[derive(Debug)]
pub(super) struct Screen {
    what: What,
    host: Vec<[String; 2]>,
    reconcilers: Table,
    views: Table,
    modules: Table,
    unused: usize,
    roots: Table,
    /// How many roots are not ready, and how many there are.
    not_ready: (usize, usize),
    unread: Vec<String>,
    /// What to do, each with what it is about.
    next: Vec<(String, String)>,
    /// Whether everything is ready.
    pub(super) is_well: bool,
}

/// Decides what is shown.
pub(super) fn of(seen: &Seen, what: What, now: Timestamp) -> Screen {
    let mut next = Next::default();
    let works = seen.host.works(now);
    if !works {
        next.0.push(("no host".into(), without_host(&seen.host)));
    }
    let gateway_works = seen.gateway.as_ref().is_none_or(Gateway::works);
    if let Some(gateway) = seen.gateway.as_ref().filter(|_| !gateway_works) {
        next.0.push(("no gateway".into(), gateway.remedy()));
    }
    let not_ready = not_ready(seen);
    let all_ready = |conditions: &[Condition], generation| Readiness::of(conditions, generation).is_ready();
    let modules_ready = seen.modules.iter().all(|module| {
        module.status.as_ref().is_some_and(|status| all_ready(&status.conditions, module.metadata.generation))
    });
    let reconcilers_ready = seen.reconcilers.iter().all(|reconciler| {
        reconciler.status.as_ref().is_some_and(|status| {
            all_ready(&status.conditions, reconciler.metadata.generation)
                && roots_ready(reconciler).is_none_or(|roots| roots.status == ConditionStatus::True)
        })
    });
    let views_ready = seen.views.iter().all(|view| {
        readiness_of_view(view).is_ready()
            && registered(view).is_none_or(|registered| registered.status == ConditionStatus::True)
    });
    let reconcilers = reconcilers(seen, &not_ready, what, &mut next);
    let views = views(seen, what, &mut next);
    let (modules, unused) = modules(seen, what, &mut next);
    let mut host = seen.host.lines(now);
    host.extend(seen.gateway.as_ref().map(Gateway::line));
    Screen {
        what,
        host,
        reconcilers,
        views,
        modules,
        unused,
        roots: blocking(&not_ready, &seen.reconcilers, what, &mut next, now),
        not_ready: (not_ready.len(), seen.roots.len()),
        unread: seen.unread.iter().map(Unread::text).collect(),
        next: next.0,
        is_well: works
            && gateway_works
            && modules_ready
            && reconcilers_ready
            && views_ready
            && not_ready.is_empty(),
    }
}

impl Screen {
    /// What is shown as text. Messages are wrapped to the width.
    pub(super) fn text(&self, width: usize) -> String {
        let mut text = output::columns(&self.host);
        let mut part = |part: String| {
            text.push('\n');
            text.push_str(&part);
        };
        match (self.reconcilers.is_empty(), self.what) {
            (true, What::Everything) => part("There are no Reconcilers.\n".into()),
            // It is a View.
            (true, What::One) => {}
            (false, _) => part(self.reconcilers.text(width)),
        }
        if !self.views.is_empty() {
            part(self.views.text(width));
        }
        let mut modules = match self.modules.is_empty() {
            true => "No Module is in use.\n".into(),
            false => self.modules.text(width),
        };
        if self.unused > 0 {
            modules.push_str(&format!("and {} that nobody uses: kubectl get modules\n", self.unused));
        }
        part(modules);
        if !self.unread.is_empty() {
            let lines: String = self.unread.iter().map(|line| wrapped(line, "  ", width)).collect();
            part(format!("Roots that cannot be read:\n{lines}"));
        }
        let (count, total) = self.not_ready;
        if count > 0 {
            let first = match count > self.roots.len() {
                true => format!("; the first {} are", self.roots.len()),
                false => String::new(),
            };
            let (is, of) = (if count == 1 { "is" } else { "are" }, if total == 1 { "root" } else { "roots" });
            part(format!("{count} of {total} {of} {is} not ready{first}:\n{}", self.roots.text(width)));
        }
        if !self.next.is_empty() {
            let lines: String = self
                .next
                .iter()
                .map(|(about, remedy)| with_whole_commands(&format!("{about}: {remedy}"), width))
                .collect();
            part(format!("What to do:\n{lines}"));
        }
        if self.is_well {
            part(match self.unread.is_empty() {
                true => "Everything is ready.\n".into(),
                false => "Everything that can be read is ready.\n".into(),
            });
        }
        text
    }
}

/// What to do about reasons: each once, in the order in which they are met.
#[derive(Default)]
struct Next(Vec<(String, String)>);

impl Next {
    /// Adds what helps against a reason. The commands in it are for this Reconciler or View, where there is one.
    fn about(&mut self, reason: &str, object: Object, of: Option<&ModuleUser>) {
        let known = reasons::ALL.iter().find(|known| known.name == reason && known.on.contains(&object));
        let Some(known) = known else { return };
        let remedy = match of {
            Some(ModuleUser::Reconciler(name)) => known.remedy.replace("RECONCILER", name),
            Some(view @ ModuleUser::View(_)) => known.remedy.replace("view/NAME", &view.to_string()),
            None => known.remedy.to_owned(),
        };
        let advice = (reason.to_owned(), remedy);
        if !self.0.contains(&advice) {
            self.0.push(advice);
        }
    }

    /// Adds what helps against a reason that the guest has given, for the first of the roots that have it.
    fn about_guest(&mut self, root: &Root) {
        let reason = &root.readiness.reason;
        if self.0.iter().any(|(about, _)| about == reason) {
            return;
        }
        let place = root.namespace.as_ref().map_or_else(String::new, |namespace| format!(" -n {namespace}"));
        let of = format!("{}/{}{place}", root.kind.kind.to_lowercase(), root.name);
        let remedy = format!(
            "The guest says this, and its message says why. What it was given and what it answered: `pintle inspect {of}`"
        );
        self.0.push((reason.clone(), remedy));
    }
}

/// What to do where no host works.
fn without_host(host: &Host) -> String {
    let namespace = &host.namespace;
    match host.is_installed() {
        true => format!("see whether a host runs, and why not: `kubectl -n {namespace} get pods,events`"),
        false => "Install it: `kubectl apply --server-side -f deploy/install.yaml`. If it is in another namespace, name that with \
                  `--namespace`."
            .into(),
    }
}

/// Text that is wrapped to the width, but for what stands between backquotes: a command stays on one line, so that it can be copied.
fn with_whole_commands(text: &str, width: usize) -> String {
    const NO_BREAK_SPACE: &str = "\u{a0}";
    let parts = text.split('`').enumerate();
    let parts: Vec<String> = parts
        .map(|(index, part)| match index % 2 {
            0 => part.to_owned(),
            _ => part.replace(' ', NO_BREAK_SPACE),
        })
        .collect();
    wrapped(&parts.join("`"), "  ", width).replace(NO_BREAK_SPACE, " ")
}

/// A message, as much of it as there is room for.
fn message(text: &str, what: What) -> String {
    match what {
        What::Everything => shortened(text),
        What::One => text.into(),
    }
}

/// A message that is too long loses its middle. What the host says last, after a semicolon, is what to do: a command that is cut is no
/// command.
fn shortened(message: &str) -> String {
    let end = message.rsplit_once("; ").filter(|(_, end)| end.len() <= MESSAGE_BYTES);
    match end.filter(|_| message.len() > MESSAGE_BYTES) {
        Some((start, end)) => {
            let room = MESSAGE_BYTES.saturating_sub(end.len()).max(MESSAGE_BYTES / 2);
            format!("{}; {end}", text::clean(start, room))
        }
        None => text::clean(message, MESSAGE_BYTES),
    }
}

fn roots_ready(reconciler: &Reconciler) -> Option<&Condition> {
    let conditions = &reconciler.status.as_ref()?.conditions;
    conditions.iter().find(|condition| condition.r#type == reasons::ROOTS_READY)
}

/// The roots that are not ready: those that only a change can help first, then those for which that has been so for longest. A root
/// whose kind has no conditions says nothing; it counts as ready where its Reconciler says that all roots are.
fn not_ready(seen: &Seen) -> Vec<&Root> {
    let says_that_all_are_ready = |root: &Root| {
        let mut of = seen.reconcilers.iter().filter(|reconciler| roots::is_of(root, reconciler));
        of.any(|reconciler| {
            roots_ready(reconciler).is_some_and(|roots| roots.status == ConditionStatus::True)
        })
    };
    let blocks = |root: &&Root| {
        let readiness = &root.readiness;
        !readiness.is_ready() && (readiness.told || !says_that_all_are_ready(root))
    };
    let mut found: Vec<&Root> = seen.roots.iter().filter(blocks).collect();
    found.sort_by_key(|root| {
        let Readiness { stalled, since, .. } = &root.readiness;
        (!stalled, since.is_empty(), since, &root.namespace, &root.kind, &root.name)
    });
    found
}

fn reconcilers(seen: &Seen, not_ready: &[&Root], what: What, next: &mut Next) -> Table {
    let head = ["RECONCILER", "READY", "MODULE", "ROOTS", "ROOTS-READY", "FAILING", "ROOTS-REASON"];
    let mut table = Table::new(&head);
    for reconciler in &seen.reconcilers {
        let name = reconciler.name_any();
        let status = reconciler.status.clone().unwrap_or_default();
        let readiness = Readiness::of(&status.conditions, reconciler.metadata.generation);
        let count = |count: fn(&pintle_api::RootCounts) -> u32| {
            status.roots.as_ref().map_or_else(String::new, |roots| count(roots).to_string())
        };
        let roots = roots_ready(reconciler);
        let of = ModuleUser::Reconciler(name.clone());
        table.row([
            name,
            readiness.status.as_str().into(),
            status.active.as_ref().map(|active| active.module.clone()).unwrap_or_default(),
            count(|roots| roots.total),
            count(|roots| roots.ready),
            count(|roots| roots.failing),
            roots.map(|roots| roots.reason.clone()).unwrap_or_default(),
        ]);
        if !readiness.is_ready() {
            table.below(&message(&readiness.why(), what));
            next.about(&readiness.reason, Object::Reconciler, Some(&of));
        }
        if let Some(roots) = roots.filter(|roots| roots.status != ConditionStatus::True) {
            table.below(&message(&roots.message, what));
            // Its reason is that of a root, or that no root fails. Then what helps stands with the roots, unless the host has not looked at
            // them yet.
            let say_themselves =
                |root: &&Root| roots::is_of(root, reconciler) && !root.readiness.reason.is_empty();
            if roots.reason != reasons::PROGRESSING || !not_ready.iter().any(say_themselves) {
                next.about(&roots.reason, Object::Root, Some(&of));
            }
        }
    }
    table
}

fn readiness_of_view(view: &View) -> Readiness {
    let conditions = view.status.as_ref().map_or(&[][..], |status| &status.conditions);
    Readiness::of_view(conditions, view.metadata.generation)
}

/// Whether the API server sends requests for a View to the gateway.
fn registered(view: &View) -> Option<&Condition> {
    let conditions = &view.status.as_ref()?.conditions;
    conditions.iter().find(|condition| condition.r#type == reasons::REGISTERED)
}

fn views(seen: &Seen, what: What, next: &mut Next) -> Table {
    let mut table = Table::new(&["VIEW", "READY", "MODULE", "RESOURCE", "REGISTERED"]);
    for view in &seen.views {
        let status = view.status.as_ref();
        let active = status.and_then(|status| status.active.as_ref());
        let served = status.and_then(|status| status.served.as_ref());
        let resource = served.map(|served| {
            if served.is_of_documents() {
                return format!("/{}", served.rest);
            }
            let group = served.api_version.split('/').next().unwrap_or_default();
            format!("{}.{group}", served.plural)
        });
        let (readiness, registered) = (readiness_of_view(view), registered(view));
        let of = ModuleUser::View(view.name_any());
        table.row([
            view.name_any(),
            readiness.status.as_str().into(),
            active.map(|active| active.module.clone()).unwrap_or_default(),
            resource.unwrap_or_default(),
            registered.map_or_else(String::new, |registered| registered.status.as_str().into()),
        ]);
        if !readiness.is_ready() {
            table.below(&message(&readiness.why(), what));
            next.about(&readiness.reason, Object::View, Some(&of));
        }
        if let Some(not) = registered.filter(|registered| registered.status != ConditionStatus::True) {
            table.below(&message(&format!("{}: {}", not.reason, not.message), what));
            next.about(&not.reason, Object::View, Some(&of));
        }
    }
    table
}

/// The Modules that are in use, not ready or being deleted, and how many there are besides.
fn modules(seen: &Seen, what: What, next: &mut Next) -> (Table, usize) {
    let mut table = Table::new(&["MODULE", "READY", "GUEST", "VERSION", "USED BY"]);
    let mut unused = 0;
    for module in &seen.modules {
        let name = module.name_any();
        let status = module.status.clone().unwrap_or_default();
        let readiness = Readiness::of(&status.conditions, module.metadata.generation);
        let users: Vec<&ModuleUser> = seen.users.of_module(&name).collect();
        let is_deleting = module.metadata.deletion_timestamp.is_some();
        if users.is_empty() && readiness.is_ready() && !is_deleting {
            unused += 1;
            continue;
        }
        table.row([
            name,
            readiness.status.as_str().into(),
            manifest_text(module, "name"),
            manifest_text(module, "version"),
            users.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        ]);
        if !readiness.is_ready() {
            table.below(&message(&readiness.why(), what));
            next.about(&readiness.reason, Object::Module, None);
        }
        if is_deleting {
            table.below("It is being deleted, and goes when no Reconciler or View uses it any more.");
        }
        for user in users.into_iter().filter(|_| is_deleting) {
            let reason = match user {
                ModuleUser::Reconciler(_) => reasons::USED_BY_RECONCILER,
                ModuleUser::View(_) => reasons::USED_BY_VIEW,
            };
            next.about(reason, Object::Module, Some(user));
        }
    }
    (table, unused)
}

/// A word of the manifest that a Module's status shows; empty where there is none yet.
fn manifest_text(module: &Module, key: &str) -> String {
    let manifest = module.status.as_ref().and_then(|status| status.manifest.as_ref());
    manifest.and_then(|manifest| manifest[key].as_str()).unwrap_or_default().to_owned()
}

fn blocking(
    not_ready: &[&Root],
    reconcilers: &[Reconciler],
    what: What,
    next: &mut Next,
    now: Timestamp,
) -> Table {
    let shown = match what {
        What::Everything => ROOTS_SHOWN,
        What::One => usize::MAX,
    };
    let mut table = Table::new(&["NAMESPACE", "KIND", "NAME", "READY", "REASON", "FOR"]);
    for root in not_ready.iter().take(shown) {
        let readiness = &root.readiness;
        table.row([
            root.namespace.clone().unwrap_or_default(),
            root.kind.kind.clone(),
            root.name.clone(),
            readiness.status.as_str().into(),
            readiness.reason.clone(),
            readiness.since.parse().map_or_else(|_| String::new(), |since| age(since, now)),
        ]);
        table.below(&message(&readiness.message, what));
        let of = reconcilers.iter().find(|reconciler| roots::is_of(root, reconciler));
        let of = of.map(|reconciler| ModuleUser::Reconciler(reconciler.name_any()));
        if reasons::ALL.iter().any(|known| known.name == readiness.reason) || readiness.reason.is_empty() {
            next.about(&readiness.reason, Object::Root, of.as_ref());
        } else {
            next.about_guest(root);
        }
    }
    table
}
