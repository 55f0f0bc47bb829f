//! JSON Schema (draft 2020-12) of the files that people write, for editors and other programs. It follows from the key
//! tables and from nothing else.

use super::schema::{Default, Key, Literal, Takes, USER_DEFINED_PREFIX};
use serde_json::{Map, Value as Json, json};

/// A kind of file that has a schema.
#[derive(Clone, Copy, Debug)]
pub struct FileKind {
    /// Its name, as `hopline schema` takes it.
    pub name: &'static str,
    /// Title of such a file.
    pub title: &'static str,
    /// Keys of the file.
    pub keys: &'static [Key],
}

/// The dialect.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Name of the definition of a table of lists by dotted key.
const LISTS: &str = "table-of-lists";
/// Name of the definition of a table of values by dotted key.
const SETTINGS: &str = "table-of-settings";

impl FileKind {
    /// Its schema. Tables that occur in several places, such as error models, are defined once. What the keys alone do not
    /// say, such as that a flow names nodes that there are, is not in it.
    #[must_use]
    pub fn schema(&self) -> Json {
        let mut defs = Definitions::default();
        let mut schema = Map::new();
        schema.insert("$schema".into(), json!(DIALECT));
        schema.insert("title".into(), json!(self.title));
        schema.extend(defs.table("", self.keys));
        let defs: Map<String, Json> = defs.0.into_iter().map(|d| (d.name, d.schema)).collect();
        schema.insert("$defs".into(), Json::Object(defs));
        Json::Object(schema)
    }
}

/// Definitions under `$defs`, each named after the first place where it occurs.
#[derive(Default)]
struct Definitions(Vec<Definition>);

struct Definition {
    name: String,
    /// The key table behind it, if there is one.
    keys: Option<&'static [Key]>,
    schema: Json,
}

impl Definitions {
    /// Returns the object that `keys` describe, found at `path`.
    fn table(&mut self, path: &str, keys: &'static [Key]) -> Map<String, Json> {
        let properties: Map<String, Json> = keys
            .iter()
            .map(|key| (key.name.into(), self.property(&super::schema::join(path, key.name), key)))
            .collect();
        let required = keys.iter().filter(|key| key.default == Default::Required);
        let required: Vec<&str> = required.map(|key| key.name).collect();
        let Json::Object(mut table) = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": properties,
        }) else {
            unreachable!("written as an object")
        };
        if !required.is_empty() {
            table.insert("required".into(), json!(required));
        }
        table
    }

    fn property(&mut self, path: &str, key: &'static Key) -> Json {
        let mut property = self.takes(path, key.takes);
        property.insert("description".into(), json!(format!("{}{}", key.doc, key.default.remark())));
        if let Some(default) = key.default.value().and_then(Literal::json) {
            property.insert("default".into(), default);
        }
        // Texts, numbers and lists of them are written alike in TOML and JSON. Tables are not.
        if let Some(example) = key.example.and_then(|value| serde_json::from_str::<Json>(value).ok()) {
            property.insert("examples".into(), json!([example]));
        }
        Json::Object(property)
    }

    fn takes(&mut self, path: &str, takes: Takes) -> Map<String, Json> {
        let schema = match takes {
            Takes::Number(min, max) => number(min, max),
            Takes::NumberOrTable(min, max, keys) => {
                json!({ "anyOf": [number(min, max), self.shared(path, keys)] })
            }
            Takes::Integer(min, max) => integer(min, max),
            Takes::IntegerOr(min, max, words) => json!({ "anyOf": [integer(min, max), word(words)] }),
            Takes::Word(words) => word(words),
            Takes::WordOrUserDefined(words) => json!({ "anyOf": [word(words), user_defined_name()] }),
            Takes::Flag => json!({ "type": "boolean" }),
            Takes::Text => json!({ "type": "string" }),
            Takes::TextOrTable(keys) => json!({ "anyOf": [{ "type": "string" }, self.shared(path, keys)] }),
            Takes::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Takes::Integers(min, max) => {
                json!({ "type": "array", "minItems": 1, "items": integer(min, max) })
            }
            Takes::Table(keys) => self.shared(path, keys),
            Takes::Tables(keys) => json!({ "type": "array", "items": self.shared(path, keys) }),
            Takes::Lists => self.dotted(LISTS, json!({ "type": "array", "minItems": 1 })),
            Takes::Settings => self.dotted(SETTINGS, json!({ "not": { "type": "object" } })),
        };
        let Json::Object(schema) = schema else { unreachable!("every schema above is an object") };
        schema
    }

    /// Returns a reference to the table of `keys`, which is defined if it is met for the first time.
    fn shared(&mut self, path: &str, keys: &'static [Key]) -> Json {
        if let Some(known) = self.0.iter().find(|d| d.keys == Some(keys)) {
            return reference(&known.name);
        }
        let place = self.0.len();
        self.0.push(Definition { name: path.into(), keys: Some(keys), schema: Json::Null });
        self.0[place].schema = Json::Object(self.table(path, keys));
        reference(path)
    }

    /// Returns a reference to a table of `value` by dotted key. A key `a.b` may also be written as table `a`
    /// with key `b`.
    fn dotted(&mut self, name: &str, value: Json) -> Json {
        if !self.0.iter().any(|d| d.name == name) {
            let schema =
                json!({ "type": "object", "additionalProperties": { "anyOf": [value, reference(name)] } });
            self.0.push(Definition { name: name.into(), keys: None, schema });
        }
        reference(name)
    }
}

fn number(min: f64, max: f64) -> Json {
    json!({ "type": "number", "minimum": min, "maximum": max })
}

fn integer(min: u64, max: u64) -> Json {
    json!({ "type": "integer", "minimum": min, "maximum": max })
}

fn word(words: &[&str]) -> Json {
    json!({ "type": "string", "enum": words })
}

fn user_defined_name() -> Json {
    json!({ "type": "string", "pattern": format!("^{USER_DEFINED_PREFIX}.+") })
}

fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/$defs/{name}") })
}
