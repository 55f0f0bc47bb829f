//! Conditional parts of a script: `#ifdef SYSTEM`, `#ifndef`, `#else`, `#endif`.

/// Symbols that are defined: `STANDARD` stands for the behaviour that the RFCs want.
const DEFINED: [&str; 1] = ["STANDARD"];

/// Returns the text with parts for other systems blank, so that the rest keeps its positions.
pub(super) fn without_other_systems(text: &str) -> String {
    let mut conditions: Vec<bool> = Vec::new();
    let mut kept = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut words = line.split_whitespace();
        let is_directive = match (words.next(), words.next()) {
            (Some("#ifdef"), Some(symbol)) => {
                conditions.push(DEFINED.contains(&symbol));
                true
            }
            (Some("#ifndef"), Some(symbol)) => {
                conditions.push(!DEFINED.contains(&symbol));
                true
            }
            (Some("#else"), _) => {
                if let Some(last) = conditions.last_mut() {
                    *last = !*last;
                }
                true
            }
            (Some("#endif"), _) => {
                conditions.pop();
                true
            }
            _ => false,
        };
        if is_directive || conditions.contains(&false) {
            // Blanks of the same length: positions in the text stay.
            kept.extend(line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        } else {
            kept.push_str(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::without_other_systems;

    #[test]
    fn the_part_for_the_standard_stays_at_its_position() {
        let text = "a\n#ifdef STANDARD\nb\n#else\nc\n#endif\n#ifdef FreeBSD\nd\n#endif\ne\n";
        let kept = without_other_systems(text);
        assert_eq!(kept.split_whitespace().collect::<Vec<_>>(), ["a", "b", "e"]);
        assert_eq!(
            (kept.find('b'), kept.find('e'), kept.len()),
            (text.find("b\n"), text.rfind("e\n"), text.len())
        );
    }
}
