//! How programs say where they listen, and how they end.

use super::*;

#[test]
fn a_component_that_does_not_end_is_killed_and_that_is_no_failure() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("logs")).unwrap();
    let mut processes = Processes::new(directory.path(), false).unwrap();
    // What is ignored stays ignored in the program that takes the shell's place.
    let script = "trap '' TERM; echo deaf; exec sleep 600";
    processes.start("deaf", Path::new("/bin/sh"), &["-c", script].map(str::to_owned)).unwrap();
    processes.components[0].says("that it ignores SIGTERM", |said| (said == "deaf").then_some(())).unwrap();

    let process = PathBuf::from(format!("/proc/{}", processes.components[0].id()));
    assert!(process.exists());
    processes.stop_within(Duration::from_millis(200)).unwrap();
    assert!(!process.exists(), "it is gone");
}

#[test]
fn what_ends_with_a_pipe_and_does_not_clean_up_is_a_failure_with_the_end_of_its_log() {
    for (script, within, fails) in [
        ("read -r _; true", 60, false),
        ("echo stuck; read -r _; false", 60, true),
        ("echo stuck; read -r _; exec sleep 600", 3, true),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("logs")).unwrap();
        let mut processes = Processes::new(directory.path(), false).unwrap();
        processes.start_with_pipe("box", Path::new("/bin/sh"), &["-c", script].map(str::to_owned)).unwrap();
        let outcome = processes.stop_within(Duration::from_secs(within));
        assert_eq!(outcome.is_err(), fails, "{script}: {outcome:?}");
        if let Err(error) = outcome {
            assert!(error.to_string().contains("stuck"), "{script}: {error}");
        }
    }
}

#[test]
fn a_server_says_where_it_listens_in_a_whole_line_with_these_words() {
    let folder = tempfile::tempdir().unwrap();
    let start = |script: &str| {
        let log = folder.path().join("server.log");
        Server::start("server", Command::new("/bin/sh").args(["-c", script]), &log).unwrap()
    };
    let expected = "127.0.0.1:80".parse().unwrap();
    let text =
        "echo 'INFO Waits address=1.1.1.1:1'; echo 'INFO It starts version=\"1\" address=\"127.0.0.1:80\"'";
    assert_eq!(start(text).address("It starts").unwrap(), expected);
    // It begins after what is in the log from before.
    let json = r#"echo '{"level":"INFO","message":"It starts","address":"127.0.0.1:80"}'"#;
    let mut server = start(json);
    assert_eq!(server.address("It starts").unwrap(), expected);
    assert!(server.address("It ends").unwrap_err().to_string().contains("exited"));
    let mut server = start("printf 'It starts address=127.0.0.1:8'");
    server.address("It starts").unwrap_err();
}
