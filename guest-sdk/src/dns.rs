//! Checks of DNS labels, for guests that derive object names from their root's name.

use pintle_wit::syntax;

/// Whether a name is a DNS label by RFC 1035, which the name of a Service must be.
pub fn dns_1035_label(name: &str) -> bool {
    syntax::is_rfc_1035_label(name)
}

/// Whether a name is a DNS label by RFC 1123, which is one part of a host name.
pub fn dns_1123_label(name: &str) -> bool {
    syntax::is_label(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_letters_digits_and_inner_hyphens() {
        for good in ["a", "a1", "a-1", "a--b", &"a".repeat(63)] {
            assert!(dns_1035_label(good) && dns_1123_label(good), "{good}");
        }
        for bad in ["", "-", "a-", "-a", "A", "a.b", "a_b", "ä", &"a".repeat(64)] {
            assert!(!dns_1035_label(bad) && !dns_1123_label(bad), "{bad}");
        }
        assert!(dns_1123_label("1a") && !dns_1035_label("1a"));
    }
}
