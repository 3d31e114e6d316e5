//! Answers in YAML. What is answered is made in JSON, and written again: an object whole, a list piece by piece.

use serde_json::{Map, Value};

/// A text of JSON as YAML.
///
/// # Errors
/// It is no JSON, which would be a fault of ours.
pub(crate) fn of(json: &[u8]) -> Result<String, String> {
    let value: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    serde_saphyr::to_string(&value).map_err(|error| error.to_string())
}

/// A list that is written piece by piece, from the pieces in JSON.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The field that has the items: `items`, or `rows`.
    field: String,
    has_items: bool,
}

impl Listing {
    /// What stands before the items: the fields before an array that is not closed, `{"kind":"LlamaList","items":[`.
    pub(crate) fn begin(&mut self, json: &str) -> Result<String, String> {
        let mut fields: Map<String, Value> =
            serde_json::from_str(&format!("{json}]}}")).map_err(|error| error.to_string())?;
        json.rsplit('"').nth(1).unwrap_or_default().clone_into(&mut self.field);
        fields.remove(&self.field);
        serde_saphyr::to_string(&fields).map_err(|error| error.to_string())
    }

    /// An item, which is an object.
    pub(crate) fn item(&mut self, json: &str) -> Result<String, String> {
        let item = of(json.as_bytes())?;
        let mut text = String::with_capacity(item.len() * 5 / 4);
        if !std::mem::replace(&mut self.has_items, true) {
            text.push_str(&self.field);
            text.push_str(":\n");
        }
        for (number, line) in item.lines().enumerate() {
            text.push_str(if number == 0 { "- " } else { "  " });
            text.push_str(line);
            text.push('\n');
        }
        Ok(text)
    }

    /// What stands behind the items: the end of the array, and the fields behind it.
    pub(crate) fn end(&mut self, json: &str) -> Result<String, String> {
        let mut fields: Map<String, Value> =
            serde_json::from_str(&format!("{{\"\":[{json}")).map_err(|error| error.to_string())?;
        fields.remove("");
        let none = if self.has_items { String::new() } else { format!("{}: []\n", self.field) };
        let rest = serde_saphyr::to_string(&fields).map_err(|error| error.to_string())?;
        Ok(none + &rest)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Texts that YAML would take for something else, or that take several lines.
    fn hard() -> Value {
        json!({
            "plain": "x", "empty": "", "no": "no", "number": "0123", "null": "null", "lines": "a\n  b\n\nc\n", "spaces": "  a ",
            "colon": "a: b", "hash": "a #b", "dash": "- a", "tab": "\ta", "unicode": "\u{e4}\u{2028}\u{7f}", "brace": "{a}", "star": "*a",
            "quote": "'\"", "long": "x ".repeat(100), "int": 9_007_199_254_740_993_i64, "float": 254.628_595_660_358_34, "whole": 1.0,
            "small": 1e-7, "large": 1e21, "list": [[], {}, [1, [2]], null, true], "a key: b": {"": {"c": []}}, "1": 2,
        })
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let yaml = of(hard().to_string().as_bytes()).unwrap();
        assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), hard(), "{yaml}");
    }

    #[test]
    fn a_list_in_pieces_is_the_list() {
        for count in [0, 1, 3] {
            let items = vec![hard(); count];
            let mut listing = Listing::default();
            let mut text = listing
                .begin(r#"{"kind":"LlamaList","apiVersion":"a/v1","columns":[1,{"a":"items"}],"items":["#)
                .unwrap();
            for item in &items {
                text += &listing.item(&item.to_string()).unwrap();
            }
            text += &listing.end(r#"],"metadata":{"resourceVersion":"7"}}"#).unwrap();
            let expected = json!({
                "kind": "LlamaList", "apiVersion": "a/v1", "columns": [1, {"a": "items"}], "items": items, "metadata": {"resourceVersion": "7"},
            });
            assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), expected, "{text}");
        }
    }
}
