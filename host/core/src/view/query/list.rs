//! Options of lists, of watches, and of what is deleted as a collection.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use super::{
    Pairs, Query,
    fields::{self, Field, Term},
    pair, version_of_epoch, version_of_state,
};
use crate::view::{
    served::Lens,
    status::{CONTINUE_EXPIRED, Status, WATCH_EXPIRED, fault},
    version::{Epoch, Sent},
};

const EXACT: &str = "Exact";
const NOT_OLDER: &str = "NotOlderThan";

/// The options of a list or a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// Whether changes are followed.
    pub watch: bool,
    /// The version that the client knows, or wants at least.
    pub version: Sent,
    /// Whether a watch begins with the objects that there are. None: as the version says.
    pub send_initial_events: Option<bool>,
    /// Whether a watch also says how far it is.
    pub allow_bookmarks: bool,
    /// The seconds after which a watch ends.
    pub timeout_seconds: Option<u64>,
    labels: String,
    fields: Vec<Term>,
    matching: Match,
    limit: u64,
    page: String,
}

/// How a version is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    Unset,
    Exact,
    NotOlder,
}

/// How many objects are read at a time of a list that a client wants whole.
const PAGE_OBJECTS: u64 = 500;

/// A name that no object has, but that can be asked for.
const NO_NAME: &str = "metadata.name=-";

impl ListOptions {
    /// Reads the options.
    ///
    /// # Errors
    /// 400 for a selector, number or token that cannot be read; 422 for options that do not go together.
    pub fn read(query: &Query) -> Result<Self, Status> {
        let labels = query.text("labelSelector");
        check_labels(&labels)?;
        let fields = query.text("fieldSelector");
        let limit = query.number("limit")?.unwrap_or_default();
        let timeout = query.number("timeoutSeconds")?;
        let matching = Self::matching(query)?;
        let options = Self {
            watch: query.is_watch(),
            version: query.version()?,
            send_initial_events: query.flag("sendInitialEvents"),
            allow_bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            timeout_seconds: timeout
                .and_then(|seconds| u64::try_from(seconds).ok())
                .filter(|seconds| *seconds > 0),
            labels: labels.trim().to_owned(),
            fields: fields::read(&fields).map_err(Status::bad_request)?,
            matching,
            limit: u64::try_from(limit).unwrap_or(0),
            page: query.text("continue"),
        };
        // As the API server: a page is of the list that it continues, and has no version of its own.
        if !options.watch && !options.page.is_empty() && !matches!(options.version, Sent::Unset | Sent::Any) {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        Ok(options)
    }

    /// How the version is meant, if that goes together with the other options.
    fn matching(query: &Query) -> Result<Match, Status> {
        const FIELD: &str = "resourceVersionMatch";
        let matching = query.first(FIELD).unwrap_or_default();
        let is_initial = query.flag("sendInitialEvents").is_some();
        let version = query.first("resourceVersion").unwrap_or_default();
        let is_page = query.first("continue").is_some_and(|page| !page.is_empty());
        let mut faults = Vec::new();
        let mut forbid = |is_wrong: bool, field: &str, why: &str| {
            if is_wrong {
                faults.push(fault::forbidden(field, why));
            }
        };
        let is_set = !matching.is_empty();
        let continues = "resourceVersionMatch is forbidden when continue is provided";
        if query.is_watch() {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            forbid(is_initial && matching != NOT_OLDER, FIELD, why);
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            forbid(is_set && !is_initial, FIELD, why);
            if is_set && matching != NOT_OLDER {
                faults.push(fault::not_supported(FIELD, &format!("{matching:?}"), &[NOT_OLDER]));
            }
            // Where nothing else is said, the API server lists by watching, which sets it.
            let is_listing = !is_initial && matches!(version, "" | "0");
            if is_page && (is_set || is_listing) {
                faults.push(fault::forbidden(FIELD, continues));
            }
        } else {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            forbid(is_set && version.is_empty(), FIELD, why);
            forbid(is_set && is_page, FIELD, continues);
            if is_set && ![EXACT, NOT_OLDER].contains(&matching) {
                faults.push(fault::not_supported(FIELD, &format!("{matching:?}"), &[EXACT, NOT_OLDER, ""]));
            }
            if matching == EXACT && version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                faults.push(fault::forbidden(FIELD, why));
            }
            if is_initial {
                let why = "sendInitialEvents is forbidden for list";
                faults.push(fault::forbidden("sendInitialEvents", why));
            }
        }
        match matching {
            _ if !faults.is_empty() => Err(Status::invalid_options("ListOptions", faults)),
            EXACT => Ok(Match::Exact),
            NOT_OLDER => Ok(Match::NotOlder),
            _ => Ok(Match::Unset),
        }
    }

    /// The one name that can match, if the options name one: the review of the request is about it.
    pub fn name(&self) -> Option<&str> {
        let mut names = self.fields.iter().filter(|term| term.field == Field::Name && term.is_equal);
        names.next().map(|term| term.value.as_str())
    }

    /// The same for the backing kind.
    ///
    /// # Errors
    /// 410 for a version or page of another epoch, where it matters; 400 for what is no page.
    pub fn backing(&self, lens: &Lens) -> Result<Pairs, Status> {
        let mut pairs = Vec::new();
        if let Some(version) = self.backing_version(lens)? {
            pairs.push(pair("resourceVersion", version));
        }
        match self.matching {
            Match::Unset => {}
            Match::Exact => pairs.push(pair("resourceVersionMatch", EXACT)),
            Match::NotOlder => pairs.push(pair("resourceVersionMatch", NOT_OLDER)),
        }
        if self.watch {
            pairs.push(pair("watch", "true"));
            if self.allow_bookmarks {
                pairs.push(pair("allowWatchBookmarks", "true"));
            }
            if let Some(is_sent) = self.send_initial_events {
                pairs.push(pair("sendInitialEvents", is_sent.to_string()));
            }
            if let Some(seconds) = self.timeout_seconds {
                pairs.push(pair("timeoutSeconds", seconds.to_string()));
            }
        } else {
            if self.limit > 0 {
                pairs.push(pair("limit", self.limit.to_string()));
            }
            if !self.page.is_empty() {
                pairs.push(pair("continue", backing_continue(lens.epoch, &self.page)?));
            }
        }
        pairs.extend(self.backing_selectors(lens));
        Ok(pairs)
    }

    /// Whether a client wants all that there is of a list, and not a page of it.
    pub fn is_whole(&self) -> bool {
        self.limit == 0
    }

    /// The same for the first page of a list; of one that is whole, as many objects as are read at a time.
    ///
    /// # Errors
    /// As [`Self::backing`].
    pub fn first_page(&self, lens: &Lens) -> Result<Pairs, Status> {
        let mut pairs = self.backing(lens)?;
        if self.is_whole() {
            pairs.push(pair("limit", PAGE_OBJECTS.to_string()));
            // With a limit, the API server would take the version for the exact one.
            let has_version = pairs.iter().any(|(name, _)| name == "resourceVersion");
            if has_version && self.page.is_empty() && self.matching == Match::Unset {
                pairs.push(pair("resourceVersionMatch", NOT_OLDER));
            }
        }
        Ok(pairs)
    }

    /// The same for a further page, behind a token of the backing kind.
    pub fn next_page(&self, lens: &Lens, token: &str) -> Pairs {
        let page = [pair("limit", PAGE_OBJECTS.to_string()), pair("continue", token)];
        page.into_iter().chain(self.backing_selectors(lens)).collect()
    }

    fn backing_selectors(&self, lens: &Lens) -> Pairs {
        let labels = self.backing_labels(lens);
        // If no object can match, the API server is asked all the same: the list has its version, and the watch its bookmarks.
        let fields = self.backing_fields(lens).unwrap_or_else(|| NO_NAME.to_owned());
        let both = [("labelSelector", labels), ("fieldSelector", fields)];
        both.into_iter()
            .filter(|(_, selector)| !selector.is_empty())
            .map(|(name, selector)| pair(name, selector))
            .collect()
    }

    fn backing_version(&self, lens: &Lens) -> Result<Option<&str>, Status> {
        let version = &self.version;
        let is_here = version_of_epoch(lens, version).is_some() || matches!(version, Sent::Unset | Sent::Any);
        if self.watch {
            return if is_here { Ok(version_of_state(version)) } else { Err(Status::expired(WATCH_EXPIRED)) };
        }
        // A limit without a match is exact, for the sake of clients that are older than the match.
        let is_exact = match self.matching {
            Match::Exact => true,
            Match::NotOlder => false,
            Match::Unset => self.limit > 0,
        };
        if is_exact && !is_here {
            return Err(Status::expired(CONTINUE_EXPIRED));
        }
        Ok(version_of_state(version))
    }

    /// What the client selects, of what the view selects. The view's own stands first, so that nothing that the client writes is read before
    /// it.
    fn backing_labels(&self, lens: &Lens) -> String {
        let own = lens.served.selector.iter().map(|(key, value)| format!("{key}={value}"));
        let client = Some(self.labels.clone()).filter(|labels| !labels.is_empty());
        own.chain(client).collect::<Vec<_>>().join(",")
    }

    /// The terms for the backing kind. None if no object can match.
    fn backing_fields(&self, lens: &Lens) -> Option<String> {
        let mut written = Vec::new();
        for term in &self.fields {
            let value = match term.field {
                Field::Namespace => Some(term.value.as_str()),
                Field::Name => lens.names.backing(&term.value),
            };
            match value {
                Some(value) => written.push(term.written(value)),
                None if term.is_equal => return None,
                // No object has that name, so that every one has another.
                None => {}
            }
        }
        Some(written.join(","))
    }
}

/// Refuses a label selector that could change how the view's own is read, which stands before it. The API server judges the rest of it.
fn check_labels(selector: &str) -> Result<(), Status> {
    // The API server ends its text at a zero.
    if selector.contains('\0') {
        return Err(Status::bad_request("a label selector has a zero byte"));
    }
    let unbalanced = || Status::bad_request("a label selector has parentheses that do not match");
    let mut open = 0_usize;
    for letter in selector.chars() {
        match letter {
            '(' => open += 1,
            ')' => open = open.checked_sub(1).ok_or_else(unbalanced)?,
            _ => {}
        }
    }
    if open > 0 { Err(unbalanced()) } else { Ok(()) }
}

/// The token of the next page that is shown for one of the backing kind. It is void in another epoch, since one list would then show
/// objects in two ways.
pub fn shown_continue(epoch: Epoch, backing: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(format!("{epoch}:{backing}"))
}

/// The token of the backing kind.
fn backing_continue(epoch: Epoch, shown: &str) -> Result<String, Status> {
    let invalid = || Status::bad_request("invalid continue token: continue key is not valid");
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(shown).map_err(|_| invalid())?;
    let text = String::from_utf8(bytes).map_err(|_| invalid())?;
    let (of, backing) = text.split_once(':').ok_or_else(invalid)?;
    if of.is_empty() || !of.bytes().all(|byte| byte.is_ascii_digit()) || backing.is_empty() {
        return Err(invalid());
    }
    if of == epoch.to_string() { Ok(backing.to_owned()) } else { Err(Status::expired(CONTINUE_EXPIRED)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{
        query::tests::query,
        served::{Access, Served},
    };

    fn lens() -> Lens {
        let served = Served {
            api_version: "farm.example.com/v1alpha".into(),
            plural: "farmpods".into(),
            prefix: "farm-".into(),
            ..Served::default()
        };
        Lens::new("farmpods", served, Access::View, Vec::new(), Epoch::default().next())
    }

    fn read(text: &str) -> Result<ListOptions, Status> {
        ListOptions::read(&query(text))
    }

    fn asked(text: &str) -> String {
        let pairs = read(text).expect(text).backing(&lens()).expect(text);
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
    }

    fn refused(text: &str) -> (u16, String) {
        let refused = read(text).and_then(|options| options.backing(&lens())).expect_err(text);
        (refused.code, refused.message)
    }

    #[test]
    fn no_parameter_that_is_not_known_passes() {
        assert_eq!(asked("pretty=1&timeout=5s&shardSelector=x&resourceversion=1"), "");
        assert_eq!(asked("watch&limit=5&x=y"), "watch=true");
        assert_eq!(asked("watch&resourceVersion=5000001&continue=x"), "resourceVersion=5&watch=true");
        assert_eq!(refused("watch&continue=x").0, 422);
        assert_eq!(asked("allowWatchBookmarks=1&timeoutSeconds=5"), "");
    }

    #[test]
    fn a_watch_is_asked_for_with_all_its_options() {
        assert_eq!(
            asked("watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=77000001"),
            "resourceVersion=77&watch=true&allowWatchBookmarks=true&timeoutSeconds=300"
        );
        assert_eq!(
            asked("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
            "resourceVersionMatch=NotOlderThan&watch=true&sendInitialEvents=true"
        );
        assert_eq!(asked("watch=1&resourceVersion=0&timeoutSeconds=0"), "resourceVersion=0&watch=true");
    }

    #[test]
    fn the_clients_labels_are_of_those_that_the_view_selects() {
        assert_eq!(asked("labelSelector= a in (b,c) "), "labelSelector=a in (b,c)");
        let mut lens = lens();
        lens.served.selector =
            [("own".to_owned(), "x".to_owned()), ("too".to_owned(), "y".to_owned())].into();
        let labels = |text: &str| read(text).expect(text).backing_labels(&lens);
        assert_eq!(labels("labelSelector=a!=b"), "own=x,too=y,a!=b");
        assert_eq!(labels("labelSelector= "), "own=x,too=y");
    }

    #[test]
    fn whatever_a_client_writes_the_views_own_selector_stands_before_it_whole() {
        let mut lens = lens();
        lens.served.selector = [("own".to_owned(), "x".to_owned())].into();
        for (selector, is_refused) in [
            ("own!=x", false),
            ("own=y", false),
            ("!own", false),
            ("own notin (x)", false),
            ("own in (x,y),own notin (x)", false),
            ("a in (b),own in ()", false),
            ("a\0", true),
            ("\0,own=y", true),
            ("a=b\0,own=y", true),
            ("(", true),
            (")", true),
            ("a in (b", true),
            ("a in (b))", true),
            ("a in b)", true),
            ("a),(own=y", true),
            ("a in )b(", true),
            ("a=b)", true),
            // These the API server refuses.
            ("a in (b,(c))", false),
            ("a || own=y", false),
            ("a=b,,own=y", false),
            (",own=y", false),
            ("a\n=b&labelSelector=own=y", false),
        ] {
            let options = ListOptions::read(&Query::new([("labelSelector".to_owned(), selector.to_owned())]));
            match options {
                Ok(options) => {
                    assert!(!is_refused, "{selector:?}");
                    assert_eq!(options.backing_labels(&lens), format!("own=x,{selector}"));
                }
                Err(refused) => assert_eq!((is_refused, refused.code), (true, 400), "{selector:?}"),
            }
        }
    }

    #[test]
    fn a_name_is_asked_for_without_its_prefix_and_one_that_cannot_match_is_nothing() {
        assert_eq!(asked("fieldSelector=metadata.name=farm-x"), "fieldSelector=metadata.name=x");
        assert_eq!(
            asked("fieldSelector=metadata.name!=farm-x,metadata.namespace==a"),
            "fieldSelector=metadata.name!=x,metadata.namespace=a"
        );
        assert_eq!(asked("fieldSelector=metadata.name=x"), "fieldSelector=metadata.name=-");
        assert_eq!(
            asked("watch=1&fieldSelector=metadata.name=farm-"),
            "watch=true&fieldSelector=metadata.name=-"
        );
        assert_eq!(asked("fieldSelector=metadata.name!=x"), "");
        assert_eq!(refused("fieldSelector=spec.x=1"), (400, "field label not supported: spec.x".to_owned()));
        assert_eq!(
            read("fieldSelector=metadata.name=farm-x").map(|options| options.name().map(str::to_owned)),
            Ok(Some("farm-x".into()))
        );
        assert_eq!(
            read("fieldSelector=metadata.name!=farm-x").map(|options| options.name().is_some()),
            Ok(false)
        );
    }

    #[test]
    fn a_version_of_another_epoch_is_expired_where_the_state_must_be_that_one() {
        let (watch, list) = ((410, WATCH_EXPIRED.to_owned()), (410, CONTINUE_EXPIRED.to_owned()));
        for version in ["77000002", "77"] {
            assert_eq!(refused(&format!("watch=1&resourceVersion={version}")), watch);
            assert_eq!(refused(&format!("resourceVersion={version}&resourceVersionMatch=Exact")), list);
            assert_eq!(refused(&format!("resourceVersion={version}&limit=5")), list);
        }
        assert_eq!(asked("resourceVersion=77000002"), "resourceVersion=77");
        assert_eq!(
            asked("resourceVersion=77000002&resourceVersionMatch=NotOlderThan&limit=5"),
            "resourceVersion=77&resourceVersionMatch=NotOlderThan&limit=5"
        );
        assert_eq!(asked("resourceVersion=77"), "resourceVersion=0");
        assert_eq!(asked("resourceVersion=77000001&limit=5"), "resourceVersion=77&limit=5");
    }

    #[test]
    fn a_page_continues_in_its_own_epoch_alone() {
        let token = shown_continue(lens().epoch, "eyJ2Ijoi:x");
        assert_eq!(asked(&format!("limit=500&continue={token}")), "limit=500&continue=eyJ2Ijoi:x");
        assert_eq!(
            refused(&format!("continue={}", shown_continue(Epoch::default(), "x"))),
            (410, CONTINUE_EXPIRED.to_owned())
        );
        for wrong in ["!", "eyJ2Ijoi", &shown_continue(lens().epoch, "")] {
            assert_eq!(
                refused(&format!("continue={wrong}")),
                (400, "invalid continue token: continue key is not valid".to_owned())
            );
        }
        assert_eq!(
            refused(&format!("continue={token}&resourceVersion=77000001")),
            (400, "specifying resource version is not allowed when using continue".to_owned())
        );
    }

    #[test]
    fn a_list_that_is_whole_is_read_page_by_page_and_one_with_a_limit_as_it_is() {
        let written = |pairs: Pairs| {
            pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
        };
        let first = |text: &str| written(read(text).expect(text).first_page(&lens()).expect(text));
        assert_eq!(first(""), "limit=500");
        assert_eq!(first("limit=7&labelSelector=a"), "limit=7&labelSelector=a");
        assert_eq!(
            first("resourceVersion=77000001"),
            "resourceVersion=77&limit=500&resourceVersionMatch=NotOlderThan"
        );
        assert_eq!(
            first("resourceVersion=77000001&resourceVersionMatch=Exact"),
            "resourceVersion=77&resourceVersionMatch=Exact&limit=500"
        );
        let token = shown_continue(lens().epoch, "x");
        assert_eq!(
            first(&format!("continue={token}&resourceVersion=0")),
            "resourceVersion=0&continue=x&limit=500"
        );
        let options =
            read("labelSelector=a&resourceVersion=0&fieldSelector=metadata.name=farm-x").expect("read");
        assert_eq!(
            written(options.next_page(&lens(), "y")),
            "limit=500&continue=y&labelSelector=a&fieldSelector=metadata.name=x"
        );
    }
}
