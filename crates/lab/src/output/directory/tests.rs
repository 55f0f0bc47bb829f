use super::*;

fn write(target: &Path, existing: Existing, text: &str) -> Result<(), OutputError> {
    let directory = Directory::create(target, existing)?;
    let manifest = format!("{{\"format\": \"{FORMAT}\"}}");
    directory.write(MANIFEST, |f| f.write_all(manifest.as_bytes()))?;
    directory.write("text", |f| f.write_all(text.as_bytes()))?;
    directory.finish()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

#[test]
fn a_directory_appears_when_it_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let directory = Directory::create(&target, Existing::Refuse).unwrap();
    directory.write("text", |f| f.write_all(b"hello")).unwrap();
    assert!(!target.exists());
    directory.finish().unwrap();
    assert_eq!(fs::read_to_string(target.join("text")).unwrap(), "hello");
    assert_eq!(names(folder.path()), ["out"], "no draft is left");
}

#[test]
fn an_abandoned_directory_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let directory = Directory::create(&folder.path().join("out"), Existing::Refuse).unwrap();
    directory.write("text", |f| f.write_all(b"hello")).unwrap();
    drop(directory);
    assert!(names(folder.path()).is_empty());
}

#[cfg(unix)]
#[test]
fn a_directory_that_another_process_is_writing_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let first = Directory::create(&target, Existing::Refuse).unwrap();
    first.write("text", |f| f.write_all(b"hello")).unwrap();
    let before = names(folder.path());
    for existing in [Existing::Refuse, Existing::Replace] {
        let refused = Directory::create(&folder.path().join("./out/"), existing).unwrap_err();
        assert!(matches!(refused, OutputError::InUse { .. }), "{refused}");
        assert_eq!(names(folder.path()), before, "nothing was touched");
    }
    write(&folder.path().join("other"), Existing::Refuse, "").unwrap();
    first.finish().unwrap();
    assert_eq!(fs::read_to_string(target.join("text")).unwrap(), "hello");
    assert_eq!(names(folder.path()), ["other", "out"]);
}

/// A lock belongs to an open folder, so that threads exclude each other as processes do.
#[cfg(unix)]
#[test]
fn processes_that_replace_a_directory_at_once_are_refused_or_write_it_whole() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let begin = &|number: usize| {
        let is_written = |round: &usize| match write(&target, Existing::Replace, "text") {
            Ok(()) => true,
            Err(OutputError::InUse { .. }) => false,
            Err(error) => panic!("{number}, round {round}: {error}"),
        };
        (0..100).filter(is_written).count()
    };
    let written: usize = std::thread::scope(|scope| {
        let spawn = |number| scope.spawn(move || begin(number));
        (0..4).map(spawn).collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(written > 0);
    assert_eq!(names(folder.path()), ["out"]);
    assert_eq!(names(&target), [MANIFEST, "text"]);
}

#[cfg(unix)]
#[test]
fn drafts_of_killed_processes_are_removed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let in_use = Directory::create(&folder.path().join("a"), Existing::Refuse).unwrap();
    in_use.write("text", |f| f.write_all(b"hello")).unwrap();
    for name in [".hopline-draft-killed", ".hopline-part-0", ".hopline-mine", "folder"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("run.pcapng"), "half").unwrap();
    }
    std::os::unix::fs::symlink(folder.path().join("folder"), folder.path().join(".hopline-draft-link"))
        .unwrap();
    fs::write(folder.path().join(".hopline-draft-file"), "text").unwrap();
    write(&folder.path().join("b"), Existing::Refuse, "").unwrap();
    in_use.finish().unwrap();
    let left = [
        ".hopline-draft-file",
        ".hopline-draft-link",
        ".hopline-mine",
        ".hopline-part-0",
        "a",
        "b",
        "folder",
    ];
    assert_eq!(names(folder.path()), left);
    assert_eq!(names(&folder.path().join("a")), ["text"]);
    assert_eq!(names(&folder.path().join("folder")), ["run.pcapng"]);
}

#[test]
fn an_existing_directory_is_refused_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    write(&target, Existing::Refuse, "first").unwrap();
    let error = write(&target, Existing::Refuse, "second").unwrap_err();
    assert!(
        matches!(error, OutputError::Exists { .. }) && error.to_string().contains("add --force"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(target.join("text")).unwrap(), "first");
    assert_eq!(names(folder.path()), ["out"]);
}

#[test]
fn earlier_results_are_replaced_completely_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    write(&target, Existing::Refuse, "first").unwrap();
    fs::write(target.join("extra"), "of the first").unwrap();
    write(&target, Existing::Replace, "second").unwrap();
    assert_eq!(names(&target), [MANIFEST, "text"]);
    assert_eq!(fs::read_to_string(target.join("text")).unwrap(), "second");
    assert_eq!(names(folder.path()), ["out"]);
}

#[test]
fn an_empty_directory_may_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    fs::create_dir(&target).unwrap();
    write(&target, Existing::Replace, "text").unwrap();
    assert_eq!(names(&target), [MANIFEST, "text"]);
}

#[test]
fn a_directory_without_results_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("thesis.tex"), "years of work").unwrap();
    for manifest in [None, Some("{}"), Some("not json"), Some("{\"format\": \"other\"}")] {
        if let Some(text) = manifest {
            fs::write(target.join(MANIFEST), text).unwrap();
        }
        let error = write(&target, Existing::Replace, "text").unwrap_err();
        assert!(matches!(error, OutputError::Foreign { .. }), "{error}");
    }
    assert_eq!(fs::read_to_string(target.join("thesis.tex")).unwrap(), "years of work");
}

#[test]
fn a_file_or_link_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    fs::write(&target, "a file").unwrap();
    for (target, existing) in
        [(&target, Existing::Refuse), (&target, Existing::Replace), (&target.join("below"), Existing::Refuse)]
    {
        let error = write(target, existing, "").unwrap_err().to_string();
        assert!(error.ends_with("/out: it is a file; -o takes a directory"), "{error}");
    }
    fs::remove_file(&target).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", &target).unwrap();
        assert!(matches!(write(&target, Existing::Refuse, ""), Err(OutputError::Exists { .. })));
        assert!(matches!(write(&target, Existing::Replace, ""), Err(OutputError::Foreign { .. })));
    }
}

#[test]
fn results_get_another_name_if_their_place_is_taken_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    for (number, existing) in [(1, Existing::Refuse), (2, Existing::Replace)] {
        let directory = Directory::create(&target, existing).unwrap();
        directory.write("text", |f| f.write_all(b"hello")).unwrap();
        fs::create_dir(&target).unwrap();
        fs::write(target.join("thesis.tex"), "years of work").unwrap();
        let error = directory.finish().unwrap_err();
        let kept = folder.path().join(format!("out-{number}"));
        assert!(error.to_string().ends_with(&format!("the results are in {}", kept.display())), "{error}");
        assert_eq!(names(&target), ["thesis.tex"]);
        assert_eq!(fs::read_to_string(kept.join("text")).unwrap(), "hello");
        fs::remove_dir_all(&target).unwrap();
    }
    write(&target, Existing::Refuse, "").unwrap();
    assert_eq!(names(folder.path()), ["out", "out-1", "out-2"], "the next one removes nothing");
}

#[cfg(unix)]
#[test]
fn results_have_the_default_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("out"), Existing::Refuse, "").unwrap();
    fs::create_dir(folder.path().join("plain")).unwrap();
    let mode = |name| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("out"), mode("plain"));
}

#[test]
fn missing_parent_folders_are_created_and_removed_on_failure() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a/b/c/d");
    let given_up = Directory::create(&target, Existing::Refuse).unwrap();
    given_up.write("text", |f| f.write_all(b"hello")).unwrap();
    drop(given_up);
    assert!(names(folder.path()).is_empty());
    write(&target, Existing::Refuse, "first").unwrap();
    assert_eq!(names(&target), [MANIFEST, "text"]);
    assert_eq!(names(&folder.path().join("a/b/c")), ["d"]);
}

#[test]
fn parent_folders_used_by_other_programs_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let given_up = Directory::create(&folder.path().join("a/b/c"), Existing::Refuse).unwrap();
    fs::write(folder.path().join("a/other"), "").unwrap();
    drop(given_up);
    assert_eq!(names(&folder.path().join("a")), ["other"]);
}

#[test]
fn an_error_names_the_target_and_not_the_draft() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let refused =
        Directory::create(&folder.path().join("file/a/b"), Existing::Refuse).unwrap_err().to_string();
    assert!(refused.ends_with("/file: it is a file; -o takes a directory"), "{refused}");
    let refused = Directory::create(&folder.path().join("file/a"), Existing::Refuse).unwrap_err().to_string();
    assert!(
        refused.ends_with("/file: it is a file; -o takes a directory") && !refused.contains(".hopline-"),
        "{refused}"
    );
}
