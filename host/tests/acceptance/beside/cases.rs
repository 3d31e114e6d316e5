//! What is compared, as text: `cases/*.txt`. A file has one area, behind `# `. A case has its claim behind `## `, and a step a line; it has a
//! namespace of its own.
//!
//! - `METHOD TARGET?QUERY (HEADER: VALUE) FORM BODY` sends a request, and what is answered is compared. `TARGET` is the name of a Llama, `.`
//!   for all of them, `configmap/NAME`, or a path. `FORM` is a media type, or `merge` or `json` for that of a patch; without one, the body is
//!   JSON, and that of a DELETE has options.
//! - `create TARGET FIELDS` creates a Llama, or a ConfigMap. `put TARGET KEPT FIELDS` writes an object back that was kept, or another
//!   `llama`. `FIELDS` are pairs of a JSON pointer and a value, and set that; `none` takes a field away.
//! - `REQUEST | POINTERS` compares these fields of the answer alone, and `must REQUEST` none: it must succeed.
//! - `NAME = REQUEST` keeps the body of the answer, and `NAME = watch TARGET` a watch.
//! - `until CODE REQUEST` and `until POINTER VALUE REQUEST` wait until that is answered.
//! - `events WATCH COUNT`, `names`, `rising`, `initial` and `end` compare what a watch shows ([`super::side::Side`] says how).
//! - `same MARKS` compares whether what the marks stand for is the same, and `pages QUERY` page after page of a list.
//! - `kubectl WORDS <<< MANIFEST` compares what kubectl prints.
//! - `crowd CLIENTS TIMES REQUEST`, `race`, `counters`, `watchers`, `discovery`, `schema` and `hashes` are in [`super::special`].
//! - The name of a case of `shared.txt` is all of its steps.
//!
//! `GROUP`, `NAMESPACE`, `SOMEBODYS` (a uid that no object has), `TABLE`, `METADATA` and `METADATA_LIST` (media types) stand for what they say.
//! Marks are `${dolly/metadata/uid}` for a field of what was kept, `${owner:dolly}` for a reference to that as an owner, `${llama:dolly}` for a
//! Llama, `${x*254}` for so many letters, and `${test*10}` for so many operations of a JSON patch.

/// Those that wait longest stand first.
const AREAS: [&str; 10] = [
    include_str!("cases/owners.txt"),
    include_str!("cases/watches.txt"),
    include_str!("cases/crowds.txt"),
    include_str!("cases/deletes.txt"),
    include_str!("cases/writes.txt"),
    include_str!("cases/metadata.txt"),
    include_str!("cases/lists.txt"),
    include_str!("cases/forms.txt"),
    include_str!("cases/paths.txt"),
    include_str!("cases/kubectl.txt"),
];

const SHARED: &str = include_str!("cases/shared.txt");

/// What is done with both, and must be answered in the same way.
pub(crate) struct Case {
    /// What it is about.
    pub(crate) area: &'static str,
    pub(crate) claim: &'static str,
    pub(crate) steps: Vec<&'static str>,
}

/// All cases.
pub(crate) fn all() -> Vec<Case> {
    let shared = read(SHARED, &[]);
    AREAS.into_iter().flat_map(|text| read(text, &shared)).collect()
}

fn read(text: &'static str, shared: &[Case]) -> Vec<Case> {
    let (mut area, mut cases) = ("", Vec::<Case>::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("//")) {
        if let Some(name) = line.strip_prefix("# ") {
            area = name;
        } else if let Some(claim) = line.strip_prefix("## ") {
            cases.push(Case { area, claim, steps: Vec::new() });
        } else if let Some(case) = cases.last_mut() {
            match shared.iter().find(|shared| shared.claim == line) {
                Some(shared) => case.steps.extend(&shared.steps),
                None => case.steps.push(line),
            }
        }
    }
    cases
}
