//! Published schemas: valid by the metaschema, and consistent with the parser.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use hopline_config::source::Source;
use hopline_lab::Scenario;
use hopline_lab::file_kinds::{self, FILE_KINDS};
use jsonschema::Validator;
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn schema() -> Json {
    file_kinds::by_name("scenario").unwrap().schema()
}

fn validator() -> Validator {
    jsonschema::draft202012::new(&schema()).unwrap()
}

fn chain() -> String {
    std::fs::read_to_string(scenarios().join("chain/scenario.toml")).unwrap()
}

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn parses(text: &str) -> bool {
    let source = Arc::new(Source { name: "test.toml".into(), text: text.into() });
    Scenario::parse(source, PathBuf::from("/nonexistent"), &[]).is_ok()
}

#[test]
fn every_schema_is_valid_by_the_metaschema() {
    for kind in FILE_KINDS {
        let schema = kind.schema();
        jsonschema::draft202012::meta::validate(&schema).unwrap_or_else(|e| panic!("{}: {e}", kind.name));
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert!(
            jsonschema::draft202012::new(&schema).is_ok(),
            "{}: every reference leads somewhere",
            kind.name
        );
    }
    assert!(file_kinds::by_name("picture").is_none());
}

#[test]
fn every_shipped_scenario_validates() {
    let folders = std::fs::read_dir(scenarios()).unwrap().map(|e| e.unwrap().path());
    let mut seen = 0;
    for file in folders.map(|folder| folder.join("scenario.toml")).filter(|file| file.is_file()) {
        assert_valid(&file, "scenario");
        seen += 1;
    }
    assert!(seen >= 10, "{seen}");
}

#[test]
fn every_shipped_plan_and_register_validates_with_its_scenarios() {
    let papers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers");
    let mut seen = [0; 3];
    for folder in std::fs::read_dir(papers).unwrap().map(|e| e.unwrap().path()).filter(|path| path.is_dir()) {
        for (folder, plain) in [(folder.join("scenarios"), "scenario"), (folder, "plan")] {
            for file in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
                if file.extension().is_none_or(|e| e != "toml") {
                    continue;
                }
                let kind = if file.ends_with("claims.toml") { "claims" } else { plain };
                assert_valid(&file, kind);
                seen[["scenario", "plan", "claims"].iter().position(|k| *k == kind).unwrap()] += 1;
            }
        }
    }
    assert!(seen[0] >= 15 && seen[1] >= 20 && seen[2] >= 3, "{seen:?}");
}

fn assert_valid(file: &Path, kind: &str) {
    let validator = jsonschema::draft202012::new(&file_kinds::by_name(kind).unwrap().schema()).unwrap();
    let text: Json = toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&text).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{}: {errors:#?}", file.display());
}

#[test]
fn the_schema_rejects_keys_that_the_parser_rejects() {
    let validator = validator();
    let replaced = |from: &str, to: &str| {
        let text = chain();
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    };
    let broken = [
        ("a misspelt key", replaced("duration_s", "duraton_s")),
        ("a misspelt key below", replaced("spacing_m", "spaceing_m")),
        ("no duration", replaced("duration_s = 120", "")),
        ("a duration of none", replaced("duration_s = 120", "duration_s = 0")),
        ("a negative number", replaced("runs = 10", "runs = -1")),
        ("a fraction of a run", replaced("runs = 10", "runs = 1.5")),
        ("too many runs", replaced("runs = 10", "runs = 1000001")),
        ("text for a number", replaced("spacing_m = 200", "spacing_m = \"far\"")),
        ("an unknown word", replaced("tcp-newreno", "tcp-vegas")),
        ("a number for a word", replaced("\"tcp-newreno\"", "3")),
        ("a word that a number-or-word does not know", chain() + "[tcp]\nwindow = \"wide\"\n"),
        ("a flag that is a word", chain() + "[tcp]\ntimestamps = \"yes\"\n"),
        ("a place without a y", chain() + "[[flow]]\nsrc = \"n0\"\ndst = { x_m = 1 }\n"),
        ("a flow that is a table", replaced("[[flow]]", "[flow]")),
        ("a table that is a list", replaced("[nodes]", "[[nodes]]")),
        ("a sweep over a value", chain() + "\"tcp.mss_bytes\" = 3\n"),
        ("a waypoint without speed", chain() + "[[node]]\nwaypoints = [{ at_s = 1, x_m = 2, y_m = 3 }]\n"),
        (
            "a time that is neither number nor drawn",
            replaced("dst = \"n4\"", "dst = \"n4\"\nkind = \"on-off\"\nrate_kbps = 9\non_s = \"long\""),
        ),
        (
            "a time drawn from nothing known",
            replaced("dst = \"n4\"", "dst = \"n4\"\nkind = \"on-off\"\nrate_kbps = 9\non_s.draw = \"dice\""),
        ),
        ("an unknown error model", chain() + "[radio.errors]\nmodel = \"rain\"\n"),
        ("a date", replaced("duration_s = 120", "duration_s = 2020-01-01")),
    ];
    for (what, text) in broken {
        let document: Json = toml::from_str(&text).unwrap();
        assert!(!validator.is_valid(&document), "{what}\n{text}");
        // The sweep is checked when it is used.
        assert!(!parses(&text) || what == "a sweep over a value", "{what}: the parser takes it");
    }
}

#[test]
fn the_schema_accepts_what_the_parser_accepts() {
    let validator = validator();
    for more in [
        "[tcp]\nwindow = \"unclamped\"\ndelayed_ack_ms = \"off\"\n",
        "[tcp]\nwindow = 1\n",
        "[mac]\nrts_threshold_bytes = \"never\"\n",
        "[mac]\nrts_threshold_bytes = 65535\n",
        "[radio.errors]\nmodel = \"bit\"\nbit_error_rate = 0\n",
        "[[node]]\nx_m = -5\ny_m = 1.5\nwaypoints = [{ at_s = 1, x_m = 2, y_m = 3, speed_mps = 1 }]\n",
        "[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\nkind = \"on-off\"\nrate_kbps = 9\non_s = 1\noff_s = { draw = \"exponential\", mean = 2 }\n",
        "[sweep.mac]\ncw_min = [15, 31]\n",
    ] {
        let text = chain().replace("[sweep]\n", &format!("{more}[sweep]\n"));
        assert!(parses(&text), "{more}");
        let document: Json = toml::from_str(&text).unwrap();
        let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{more}: {errors:?}");
    }
}

#[test]
fn a_key_has_its_description_range_words_and_default() {
    let schema = schema();
    assert_eq!(
        schema["properties"]["runs"],
        json!({
            "type": "integer",
            "minimum": 1,
            "maximum": 1_000_000,
            "default": 1,
            "description": "number of paired runs of each variant in `hopline compare`",
        })
    );
    assert_eq!(schema["required"], json!(["duration_s"]));
    assert_eq!(schema["additionalProperties"], json!(false));
    let flow = &schema["$defs"]["flow"];
    assert_eq!(schema["$defs"]["obstacle.corners"]["required"], json!(["x_m", "y_m"]));
    assert_eq!(flow["properties"]["kind"]["default"], json!("bulk"));
    let window = &schema["$defs"]["tcp"]["properties"]["window"]["anyOf"];
    assert_eq!(window[1]["enum"], json!(["unclamped"]));
}

#[test]
fn shared_tables_are_defined_once() {
    let schema = schema();
    let defs = &schema["$defs"];
    assert_eq!(defs["flow"]["properties"]["tcp"]["$ref"], "#/$defs/tcp");
    assert_eq!(defs["link"]["properties"]["queue"]["$ref"], "#/$defs/queue");
    for name in ["flow.tcp", "link.queue"] {
        assert!(defs.get(name).is_none(), "{name}");
    }
}

#[test]
fn errors_of_links_have_a_direction_and_those_of_radios_do_not() {
    let schema = schema();
    let [link, radio] = ["link.errors", "radio.errors"].map(|name| &schema["$defs"][name]["properties"]);
    assert_eq!(link["direction"]["enum"], json!(["both", "a-to-b", "b-to-a"]));
    assert_eq!(link["model"], radio["model"]);
    assert!(radio.get("direction").is_none());
}

#[test]
fn the_schema_is_deterministic() {
    assert_eq!(schema().to_string(), schema().to_string());
}

/// Returns every property of a schema with the name of its table.
fn properties(schema: &Json) -> Vec<(String, Json)> {
    let tables = schema["$defs"].as_object().unwrap().iter().map(|(name, table)| (name.as_str(), table));
    let of = |(name, table): (&str, &Json)| {
        let properties = table["properties"].as_object().cloned().unwrap_or_default();
        properties.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)).collect::<Vec<_>>()
    };
    tables.chain([("", schema)]).flat_map(of).collect()
}

#[test]
fn no_default_that_is_a_value_stands_in_a_description_alone() {
    for kind in FILE_KINDS {
        for (path, property) in properties(&kind.schema()) {
            let description = property["description"].as_str().unwrap();
            let Some((_, said)) = description.split_once("; default: ") else { continue };
            assert!(property.get("default").is_none(), "{path} has its default twice");
            // What follows from other keys, or from the machine, begins with no value.
            let first = said.split([' ', ',']).next().unwrap();
            let is_value = first.parse::<f64>().is_ok() && said == first || ["true", "false"].contains(&said);
            assert!(!is_value, "{path}: {description}");
        }
    }
}

#[test]
fn a_default_is_valid_by_the_schema_of_its_key() {
    for kind in FILE_KINDS {
        let schema = kind.schema();
        for (path, mut property) in properties(&schema) {
            let Some(default) = property.get("default").cloned() else { continue };
            property["$defs"] = schema["$defs"].clone();
            let validator = jsonschema::draft202012::new(&property).unwrap();
            assert!(validator.is_valid(&default), "{path}: {default}");
        }
    }
}
