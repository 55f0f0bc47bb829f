//! Values that come from a program, as TOML writes them: what is wrong with them is then shown as in a file.

use super::document::{Setting, parse_word};
use super::source::{Origin, Problem, Source};
use serde_json::Value as Json;
use std::sync::Arc;

/// Writes a whole document as a text called `name`.
///
/// # Errors
///
/// A value that is no table, or has something in it that TOML cannot say, such as nothing at all.
pub fn document(name: &str, value: &Json) -> Result<Arc<Source>, Problem> {
    let Json::Object(_) = value else {
        return Err(Problem::new(format!("{name}: a document is a table of keys, not {value}")));
    };
    let table = of(name, "", value)?;
    let text = toml::to_string(&table).map_err(|e| Problem::new(format!("{name}: {e}")))?;
    Ok(Arc::new(Source { name: name.to_owned(), text }))
}

impl Setting {
    /// Returns the setting of `path` to `value`, as `origin` asks for it: a function or an option.
    ///
    /// # Errors
    ///
    /// Something in the value that TOML cannot say, such as nothing at all.
    pub fn of_value(origin: &str, path: &str, value: &Json) -> Result<Self, Problem> {
        let text = format!("{path} = {}", of(origin, path, value)?);
        let (start, end) = (path.len() + 3, text.len());
        let source = Arc::new(Source { name: origin.to_owned(), text });
        let key = Origin { source: source.clone(), span: 0..path.len() };
        Ok(Self { path: path.to_owned(), key, node: parse_word(&source, start..end)? })
    }
}

/// Converts a value to TOML.
fn of(name: &str, path: &str, value: &Json) -> Result<toml::Value, Problem> {
    if let Some(path) = find_null(path, value) {
        return Err(Problem::new(format!("{name}: `{path}` has no value")).help("leave the key out"));
    }
    toml::Value::try_from(value).map_err(|e| Problem::new(format!("{name}: `{path}`: {e}")))
}

/// Returns the path of a null in `value`.
fn find_null(path: &str, value: &Json) -> Option<String> {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Json::Null => Some(path.to_owned()),
        Json::Array(items) => {
            items.iter().enumerate().find_map(|(i, item)| find_null(&below(&i.to_string()), item))
        }
        Json::Object(map) => map.iter().find_map(|(name, item)| find_null(&below(name), item)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_setting_keeps_its_value_exactly() {
        for value in [
            json!("two words \"quoted\"\n"),
            json!("2"),
            json!(2),
            json!(2.0),
            json!(0.1 + 0.2),
            json!(1e-300),
            json!(-7),
            json!([1, "a", [true]]),
            json!({"a b": {"c": [1.5]}}),
        ] {
            let setting = Setting::of_value("set", "a.b", &value).expect("TOML can say it");
            assert_eq!(setting.json(), value);
        }
    }

    #[test]
    fn a_null_is_rejected_at_its_path() {
        let error = Setting::of_value("set", "flow", &json!([{"src": null}])).expect_err("null");
        assert_eq!(error.to_string(), "set: `flow.0.src` has no value (leave the key out)");
        assert!(document("dict", &json!([1])).is_err());
        let huge =
            Setting::of_value("set", "seed", &json!(u64::MAX)).expect_err("TOML's numbers are smaller");
        assert!(huge.message.contains("seed"), "{huge}");
    }

    #[test]
    fn a_document_keeps_its_values() {
        let value =
            json!({"flow": [{"src": "n0", "tcp": {"window": 2}}], "name": "x", "radio": {"preset": "p"}});
        let source = document("dict", &value).expect("TOML can say it");
        let node = crate::document::parse(&source).expect("it is TOML");
        assert_eq!(node.json_value(), value);
    }
}
