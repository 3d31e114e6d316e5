//! The source files of a crate use each other in one direction: shared types are below, what uses them is above.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use syn::{UseTree, visit::Visit};

/// The path of a module within its crate; the crate's root has none.
type Module = Vec<String>;

/// The crates that keep to it.
const CRATES: [&str; 10] = [
    "wit",
    "host/api",
    "host/console",
    "host/core",
    "host/engine",
    "host/gateway",
    "host/kubernetes",
    "host/modules",
    "host/runtime",
    "host/schema",
];

/// Every path that a file names, as it stands there.
#[derive(Default)]
struct Paths(Vec<Vec<String>>);

impl Paths {
    fn of_use(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: String| before.iter().cloned().chain([name]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => self.of_use(&with(path.ident.to_string()), &path.tree),
            UseTree::Name(name) => self.0.push(with(name.ident.to_string())),
            UseTree::Rename(name) => self.0.push(with(name.ident.to_string())),
            UseTree::Glob(_) => self.0.push(before.to_vec()),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.of_use(before, tree)),
        }
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        // Tests may look anywhere.
        if !module.attrs.iter().any(|attribute| attribute.path().is_ident("cfg")) {
            syn::visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.of_use(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }
}

/// The source files under a folder, by module.
fn files(folder: &Path, within: &Module, found: &mut BTreeMap<Module, syn::File>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let module: Module = within.iter().cloned().chain([name.clone()]).collect();
        if path.is_dir() {
            files(&path, &module, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "main" {
            let file = syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap();
            found.insert(if name == "lib" { within.clone() } else { module }, file);
        }
    }
}

/// The module that a path in another module leads to: the one of the longest prefix that is a file.
fn target(path: &[String], from: &Module, files: &BTreeMap<Module, syn::File>) -> Option<Module> {
    let mut module = from.clone();
    let mut rest = path;
    match path.first().map(String::as_str)? {
        "crate" => {
            module.clear();
            rest = &rest[1..];
        }
        "super" => {
            while rest.first().is_some_and(|name| name == "super") {
                module.pop();
                rest = &rest[1..];
            }
        }
        name => {
            let below: Module = from.iter().cloned().chain([name.to_owned()]).collect();
            files.get(&below)?;
        }
    }
    for name in rest {
        module.push(name.clone());
        if !files.contains_key(&module) {
            module.pop();
            break;
        }
    }
    Some(module)
}

/// The modules that use each other in a circle. What a module takes from those that it is in does not count: a file and the files in its
/// folder are one room.
fn circles(files: &BTreeMap<Module, syn::File>) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut uses: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, file) in files {
        let mut paths = Paths::default();
        paths.visit_file(file);
        let targets = paths.0.iter().filter_map(|path| target(path, module, files));
        uses.insert(module.clone(), targets.filter(|target| !module.starts_with(target)).collect());
    }
    // What uses nothing that is left is in no circle, nor is what nothing that is left uses.
    loop {
        let left: BTreeSet<Module> = uses.keys().cloned().collect();
        let used: BTreeSet<Module> = uses.values().flatten().cloned().collect();
        uses.values_mut().for_each(|targets| targets.retain(|target| left.contains(target)));
        uses.retain(|module, targets| !targets.is_empty() && used.contains(module));
        if uses.len() == left.len() {
            return uses;
        }
    }
}

#[test]
fn the_files_of_a_crate_use_each_other_in_one_direction() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in CRATES {
        let mut found = BTreeMap::new();
        files(&root.join(name).join("src"), &Vec::new(), &mut found);
        assert!(found.len() > 1, "{name} has files");
        let circles = circles(&found);
        assert!(circles.is_empty(), "{name}: {circles:#?}");
    }
}

#[test]
fn a_circle_is_found_and_a_folder_is_none() {
    let circle = |texts: [(&str, &str); 4]| {
        let file = |(module, text): (&str, &str)| {
            (
                module.split_terminator("::").map(Into::into).collect::<Module>(),
                syn::parse_file(text).unwrap(),
            )
        };
        circles(&texts.map(file).into_iter().collect()).len()
    };
    let root = ("", "mod a; mod b; pub use a::A;");
    let leaf = ("a::c", "use super::A; struct C;");
    assert_eq!(circle([root, leaf, ("a", "mod c; use c::C; struct A;"), ("b", "use crate::a::A;")]), 0);
    assert_eq!(circle([root, leaf, ("a", "mod c; use crate::b::B;"), ("b", "use crate::{a::{A}};")]), 2);
    assert_eq!(circle([root, leaf, ("a", "mod c;"), ("b", "fn f() { crate::a::c::C; }")]), 0);
    let above = ("a::c", "fn f() { crate::b::f() }");
    assert_eq!(circle([root, above, ("a", "mod c; use c::C;"), ("b", "use super::a::A;")]), 3);
}
