//! Shell commands of a script, as far as they set up a host.

use crate::settings::Settings;

/// Most shell scripts that call one another.
const DEEPEST_CALL: usize = 8;

/// Applies the commands between two back quotes. `include` returns the text of a shell script by its path.
///
/// # Errors
/// The reason for which a command cannot apply.
pub(crate) fn apply(
    settings: &mut Settings,
    commands: &str,
    include: &dyn Fn(&str) -> Option<String>,
) -> Result<(), String> {
    apply_nested(settings, commands, include, 0)
}

/// As [`apply`], for the commands of `depth` scripts that call one another.
fn apply_nested(
    settings: &mut Settings,
    commands: &str,
    include: &dyn Fn(&str) -> Option<String>,
    depth: usize,
) -> Result<(), String> {
    if depth > DEEPEST_CALL {
        return Err("shell scripts that call themselves".to_owned());
    }
    let commands = commands.replace("\\\n", " ");
    for line in commands.split(['\n', ';']).flat_map(|line| line.split("&&")) {
        apply_line(settings, strip_redirection(line.trim()), include, depth)?;
    }
    Ok(())
}

/// Returns the state that a command asserts, and the number of connections in it: `sockstat … | grep -c TIME_WAIT | grep 1`.
pub(crate) fn asserted_state(commands: &str) -> Option<(&str, usize)> {
    let after = commands.trim().strip_prefix("sockstat")?.split("grep -c ").nth(1)?;
    let (state, count) = after.split_once('|')?;
    Some((state.trim(), count.trim().strip_prefix("grep")?.trim().parse().ok()?))
}

fn apply_line(
    settings: &mut Settings,
    line: &str,
    include: &dyn Fn(&str) -> Option<String>,
    depth: usize,
) -> Result<(), String> {
    let mut words = line.split_whitespace();
    let program = match words.next() {
        None => return Ok(()),
        Some(comment) if comment.starts_with('#') => return Ok(()),
        Some(program) => program,
    };
    let arguments = line[program.len()..].trim();
    match program.rsplit('/').next().unwrap_or(program) {
        "sysctl" => apply_assignments(settings, arguments),
        "set_sysctls.py" => apply_files(settings, arguments),
        "tc" if arguments.split_whitespace().any(|word| word == "fq") => {
            Err("pacing by the queue discipline fq".to_owned())
        }
        "tc" if arguments.split_whitespace().any(|word| word == "limit") => {
            Err("congestion of the host's own queue".to_owned())
        }
        "ip" if arguments.starts_with("link set") && arguments.contains(" mtu ") => {
            let mtu = arguments.split(" mtu ").nth(1).unwrap_or_default().trim();
            settings.apply_option("mtu", mtu)
        }
        // Files that scripts make, without contents: only lengths count here.
        "rm" | "dd" => Ok(()),
        // Caches, queues, offloads and routes of the kernel: no such thing exists here.
        "ip" | "tc" | "ethtool" | "modprobe" | "true" | "exit" | "set" | "echo" => Ok(()),
        // It restores the machine after the test.
        name if name.starts_with("sysctl_restore") => Ok(()),
        name if name.ends_with(".sh") => match include(program) {
            Some(text) => apply_nested(settings, &text, include, depth + 1),
            None => Err(format!("the command `{program}`, which is not there")),
        },
        name => Err(format!("the command `{name}`")),
    }
}

fn strip_redirection(line: &str) -> &str {
    line.find(" >").map_or(line, |at| line[..at].trim_end())
}

/// Applies `-q name=value name="several values"`.
fn apply_assignments(settings: &mut Settings, arguments: &str) -> Result<(), String> {
    let mut rest = arguments;
    while !rest.is_empty() {
        let (word, after) = next_word(rest);
        rest = after;
        if let Some((name, value)) = word.split_once('=')
            && !word.starts_with('-')
        {
            settings.apply_sysctl(name, value.trim_matches(['"', '\'']))?;
        }
    }
    Ok(())
}

/// Applies `/proc/sys/net/ipv4/tcp_sack=0`.
fn apply_files(settings: &mut Settings, arguments: &str) -> Result<(), String> {
    for (path, value) in arguments.split_whitespace().filter_map(|word| word.split_once('=')) {
        let name = path.trim_start_matches("/proc/sys/").replace('/', ".");
        settings.apply_sysctl(&name, value.trim_matches(['"', '\'']))?;
    }
    Ok(())
}

/// Returns the first word and the text after it. Quoted parts of a word may hold blanks.
fn next_word(text: &str) -> (&str, &str) {
    let (mut quote, mut depth) = (None, 0);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, c) if c.is_whitespace() && depth == 0 => return (&text[..at], text[at..].trim_start()),
            _ => {}
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::apply;
    use crate::settings::Settings;
    use hopline_core::Duration;
    use hopline_transport::tcp::{Config, EcnMode, IdleRestart};

    fn applied(commands: &str) -> Result<Settings, String> {
        let mut settings = Settings::new(Config::linux());
        let include =
            |path: &str| (path == "./defaults.sh").then(|| "sysctl -q net.ipv4.tcp_ecn=1\n".to_owned());
        apply(&mut settings, commands, &include).map(|()| settings)
    }

    #[test]
    fn assignments_with_quotes_and_products_are_applied() {
        let settings =
            applied("sysctl -q net.ipv4.tcp_rmem=\"4096 87380 $((2*1024))\" net.ipv4.tcp_rto_min_us=5000")
                .unwrap();
        assert_eq!(
            (settings.config.receive_buffer(), settings.config.rto().min()),
            (2048, Duration::from_millis(5))
        );
    }

    #[test]
    fn a_script_beside_the_file_is_included() {
        assert_eq!(applied("./defaults.sh").unwrap().config.ecn(), EcnMode::Request);
        assert_eq!(applied("./gone.sh").unwrap_err(), "the command `./gone.sh`, which is not there");
    }

    #[test]
    fn files_of_proc_are_applied() {
        let settings = applied("./set_sysctls.py /proc/sys/net/ipv4/tcp_slow_start_after_idle=0").unwrap();
        assert_eq!(settings.config.idle_restart(), IdleRestart::Never);
    }

    #[test]
    fn an_unknown_command_is_refused_by_name() {
        assert_eq!(applied("iptables -A INPUT -j DROP").unwrap_err(), "the command `iptables`");
    }
}
