//! What `pintle render` prints of views.

use jiff::Timestamp;
use pintle_core::object;
use pintle_engine::{Module, Views};
use pintle_offline::{
    documents::Document,
    views::{
        render::{self, Rendered},
        subject::Subject,
    },
};
use pintle_wit::{Kind, names, views::ViewManifest};
use serde_json::{Value, json};

use super::Form;
use crate::cli::{
    module,
    native::Native,
    output::{self, Data},
    problem::{CommandStatus, Problem},
};

/// Whether documents are for the views of a module, and not for its guest that reconciles.
pub(super) fn are_backing(module: &Module, documents: &[Document]) -> bool {
    let has = |kind: &Kind| documents.iter().any(|document| object::kind(&document.value) == *kind);
    let is_reconciled = module.guest().is_some_and(|guest| has(&guest.manifest().reconciles));
    let views = module.views();
    let is_shown = views.is_some_and(|views| views.manifest().views.iter().any(|view| has(&view.backing)));
    !is_reconciled && (is_shown || module.guest().is_none())
}

/// Prints what the views of a module show of documents.
pub(super) fn render(
    loaded: &Module,
    documents: Vec<Document>,
    beside: &[Document],
    form: Form,
    now: Timestamp,
    native: &Native<'_>,
) -> Result<CommandStatus, Problem> {
    let views = loaded.views().ok_or_else(|| Problem::new("the module serves no views"))?;
    let (served, documents): (Vec<_>, Vec<_>) = documents.into_iter().partition(is_view);
    warn_unused(&views, &documents);
    let crds: Vec<Document> = documents.iter().chain(beside).cloned().collect();
    let mut status = CommandStatus::Fine;
    let mut is_any = false;
    let (mut objects, mut tables) = (Vec::new(), Vec::new());
    for (manifest, config) in wanted(&views, &served) {
        let backing: Vec<Value> = documents
            .iter()
            .map(|document| &document.value)
            .filter(|value| object::kind(value) == manifest.backing && is_selected(manifest, value))
            .cloned()
            .collect();
        if backing.is_empty() {
            continue;
        }
        is_any = true;
        let subject = Subject::new(&views, &manifest.name, config, &crds)
            .map_err(|failure| Problem::failed(format!("view {}: {failure}", manifest.name)))?;
        let rendered = render::rendered(&subject.view, &subject, &backing).map_err(|unanswered| {
            let said = subject.trapped().and_then(|at| native.says(at.function, &at.request));
            let said = said.map(|said| format!("\n{said}")).unwrap_or_default();
            Problem::failed(format!("{}: {}{said}", unanswered.blame.what(), unanswered.failure))
        })?;
        for one in &rendered {
            if let Some(failure) = &one.failure {
                let which = match one.object.get("name").and_then(Value::as_str) {
                    // A document, which has no kind.
                    Some(name) if manifest.document.is_some() => format!("{} {name}", manifest.name),
                    _ => object::reference(&one.object).to_string(),
                };
                eprintln!("error: {which} cannot be shown: {failure}");
                status = CommandStatus::Failed;
            }
        }
        match form {
            Form::Table | Form::Wide => {
                let lines =
                    render::table(manifest, &rendered, form == Form::Wide, now).map_err(Problem::new)?;
                tables.push(aligned(&lines));
            }
            Form::Yaml | Form::Json => objects.extend(rendered.into_iter().filter_map(shown)),
        }
    }
    if !is_any {
        return Err(Problem::new("no object in the files is one that a view shows")
            .hint(format!("the views of the module: {}", module::views(&views).join("; "))));
    }
    let text = match form {
        Form::Table | Form::Wide => tables.join("\n"),
        Form::Yaml => output::documents(&objects)?,
        Form::Json => match objects.as_slice() {
            [one] => output::text(one, Data::Json)?,
            items => output::text(&json!({"apiVersion": "v1", "kind": "List", "items": items}), Data::Json)?,
        },
    };
    output::print(&text)?;
    Ok(status)
}

fn shown(rendered: Rendered) -> Option<Value> {
    rendered.failure.is_none().then_some(rendered.object)
}

fn is_view(document: &Document) -> bool {
    let kind = object::kind(&document.value);
    kind.group() == names::DOMAIN && kind.kind == "View"
}

/// The views to render, each with its config: those that Views in the files name, or else all.
fn wanted<'a>(views: &'a Views, served: &[Document]) -> Vec<(&'a ViewManifest, Value)> {
    let all = &views.manifest().views;
    if served.is_empty() {
        return all.iter().map(|view| (view, Value::Null)).collect();
    }
    let named = |document: &Document| {
        let view = views.manifest().view(object::text(&document.value, &["spec", "view"])?)?;
        Some((view, object::at(&document.value, &["spec", "config"]).cloned().unwrap_or_default()))
    };
    served.iter().filter_map(named).collect()
}

/// Whether a view shows an object: it has the labels of the view's selector.
fn is_selected(manifest: &ViewManifest, value: &Value) -> bool {
    let label = |name: &str| object::text(value, &["metadata", "labels", name]);
    manifest.selector.iter().all(|(name, wanted)| label(name) == Some(wanted))
}

/// Says which documents no view shows.
fn warn_unused(views: &Views, documents: &[Document]) {
    for document in documents {
        let kind = object::kind(&document.value);
        let of_kind: Vec<&ViewManifest> =
            views.manifest().views.iter().filter(|view| view.backing == kind).collect();
        let at = object::reference(&document.value);
        if of_kind.is_empty() && kind.kind != "CustomResourceDefinition" {
            eprintln!("warning: {}: {at} plays no part: no view shows its kind", document.source);
        } else if !of_kind.is_empty() && !of_kind.iter().any(|view| is_selected(view, &document.value)) {
            eprintln!("warning: {}: {at} is not shown: it lacks the labels of the view", document.source);
        }
    }
}

/// The least width of a column, and the spaces behind its longest cell, as kubectl has them.
const WIDTH_MIN: usize = 6;
const PADDING: usize = 3;

/// Lines as kubectl aligns them.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let cell_width = |cell: &String| textwrap::core::display_width(cell);
    let width = |column: usize| {
        let widest = lines.iter().filter_map(|line| line.get(column)).map(cell_width).max();
        (widest.unwrap_or_default() + PADDING).max(WIDTH_MIN)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |cells: &Vec<String>| {
        let padded: String = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| cell.clone() + &" ".repeat(width.saturating_sub(cell_width(cell))))
            .collect();
        format!("{}\n", padded.trim_end())
    };
    lines.iter().map(line).collect()
}
