//! What the pages for people refer to: other pages, their sections, and the fields of a Reconciler.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use pintle_api as api;
use pintle_core::reconciler::Grants;
use pintle_offline::documents;
use pintle_schema::fit::Kinds;
use serde_json::Value;

use crate::repository;

/// Every page of the repository. The templates of `pintle new` count too.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            let is_source = !name.starts_with('.') && !matches!(name.as_str(), "target" | "node_modules");
            found.extend(if is_source { pages(&path) } else { Vec::new() });
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A line of a page, or a block of code with the language behind its fence.
enum Part {
    Line(String),
    Code { language: String, text: String },
}

fn parts(text: &str) -> Vec<Part> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            found.push(Part::Line(line.to_owned()));
            continue;
        };
        let code = lines.by_ref().take_while(|line| line.trim() != "```");
        let text = code.fold(String::new(), |text, line| text + line + "\n");
        found.push(Part::Code { language: language.to_owned(), text });
    }
    found
}

fn lines(text: &str) -> Vec<String> {
    let of_line = |part| match part {
        Part::Line(line) => Some(line),
        Part::Code { .. } => None,
    };
    parts(text).into_iter().filter_map(of_line).collect()
}

/// The anchors of a page's headings, as GitHub makes them. GitHub numbers a heading that stands twice; no link leads to such a one.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = lines(text).into_iter().filter(|line| line.starts_with('#'));
    let is_kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    headings
        .map(|heading| {
            let title = heading.trim_start_matches('#').trim().to_lowercase();
            title.chars().filter(is_kept).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
        })
        .collect()
}

/// The targets of a line's links: what stands between `](` and the next `)`. Code in a line has no links.
fn targets(line: &str) -> Vec<String> {
    let prose: String = line.split('`').step_by(2).collect();
    let links = prose.split("](").skip(1);
    links.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

#[test]
fn every_link_of_a_page_leads_to_a_file_and_a_section() {
    let mut seen = 0;
    for page in pages(&repository()) {
        let text = fs::read_to_string(&page).unwrap();
        for target in lines(&text).iter().flat_map(|line| targets(line)) {
            if target.starts_with("https://") {
                continue;
            }
            seen += 1;
            let (file, anchor) = target.split_once('#').map_or((&*target, None), |(f, a)| (f, Some(a)));
            let to = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(to.exists(), "{}: {target} is no file", page.display());
            if let Some(anchor) = anchor {
                let text = fs::read_to_string(&to).unwrap();
                let anchors = anchors(&text);
                assert!(anchors.contains(anchor), "{}: {target} is none of {anchors:#?}", page.display());
            }
        }
    }
    assert!(seen > 50, "only {seen} links were found");
}

/// Reads a block of YAML that is a Reconciler, a Module or the grants of a Reconciler. Any other block is passed over: `false`.
fn fits(kinds: &Kinds, text: &str) -> anyhow::Result<bool> {
    if text.starts_with("grants:") {
        documents::parse_one::<BTreeMap<String, Grants>>("the block", text)?;
        return Ok(true);
    }
    if !["kind: Reconciler", "kind: Module", "kind: View"].iter().any(|kind| text.contains(kind)) {
        return Ok(false);
    }
    for object in documents::parse("the block", text)?.into_iter().map(|document| document.value) {
        kinds.fit(&object, "").map_err(|found| found.failure())?;
        match object["kind"].as_str() {
            Some("Reconciler") => drop(serde_json::from_value::<api::Reconciler>(object)?),
            Some("Module") => drop(serde_json::from_value::<api::Module>(object)?),
            Some("View") => drop(serde_json::from_value::<api::View>(object)?),
            _ => {}
        }
    }
    Ok(true)
}

#[test]
fn every_reconciler_module_and_view_of_a_page_fits_its_crd() {
    let crds = api::crds();
    let kinds = Kinds::with_crds(&crds);
    let mut seen = 0;
    for page in pages(&repository()) {
        for part in parts(&fs::read_to_string(&page).unwrap()) {
            let Part::Code { language, text } = part else { continue };
            if language != "yaml" {
                continue;
            }
            let fits = fits(&kinds, &text);
            seen += usize::from(fits.unwrap_or_else(|error| panic!("{}: {error}\n{text}", page.display())));
        }
    }
    assert!(seen >= 4, "only {seen} blocks were found");
}

/// The paths of all fields below a schema, with `[]` for each item of a list.
fn fields(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if field["items"]["properties"].is_object() {
            found.insert(format!("{at}[]"));
            fields(&field["items"], &format!("{at}[]"), found);
        } else if field["properties"].is_object() {
            fields(field, &at, found);
        } else {
            found.insert(at);
        }
    }
}

#[test]
fn the_page_for_guests_has_a_row_for_every_grant_and_for_no_other_field() {
    let crds = api::crds();
    let reconciler = crds.iter().find(|crd| crd["spec"]["names"]["kind"] == "Reconciler").unwrap();
    let grants = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/grants";
    let mut declared = BTreeSet::new();
    fields(reconciler.pointer(grants).unwrap(), "", &mut declared);

    let text = fs::read_to_string(repository().join("docs/guests.md")).unwrap();
    let (_, section) = text.split_once("\n## Grants\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let described: BTreeSet<String> = rows.map(|(field, _)| field.to_owned()).collect();
    assert_eq!(described, declared);
}
