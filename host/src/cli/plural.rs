//! The plural of a kind, as URLs and RBAC have it. Without a cluster it can only be guessed.

/// Kinds whose plural follows no rule.
const IRREGULAR: [(&str, &str); 3] =
    [("Endpoints", "endpoints"), ("PodMetrics", "pods"), ("NodeMetrics", "nodes")];

/// The plural of a kind, by the rule that Kubernetes' generators use: `ies` for a `y` behind a consonant, `es` behind a sibilant,
/// `s` otherwise.
pub fn plural(kind: &str) -> String {
    if let Some((_, plural)) = IRREGULAR.iter().find(|(irregular, _)| *irregular == kind) {
        return (*plural).to_owned();
    }
    let name = kind.to_lowercase();
    let is_vowel = |letter: char| matches!(letter, 'a' | 'e' | 'i' | 'o' | 'u');
    if let Some(stem) = name.strip_suffix('y')
        && !stem.ends_with(is_vowel)
    {
        return format!("{stem}ies");
    }
    if ["s", "x", "z", "ch", "sh"].iter().any(|ending| name.ends_with(ending)) {
        return format!("{name}es");
    }
    format!("{name}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_kubernetes_have_their_plurals() {
        for (kind, expected) in [
            ("Deployment", "deployments"),
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Endpoints", "endpoints"),
            ("StorageClass", "storageclasses"),
            ("Darkroom", "darkrooms"),
        ] {
            assert_eq!(plural(kind), expected);
        }
    }
}
