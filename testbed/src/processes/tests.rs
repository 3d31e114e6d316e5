//! How components end.

use super::*;

#[test]
fn a_component_that_does_not_end_is_killed_and_that_is_no_failure() {
    let directory = tempfile::tempdir().unwrap();
    let mut processes = Processes::new(directory.path(), false).unwrap();
    // What is ignored stays ignored in the program that takes the shell's place.
    let script = "trap '' TERM; echo deaf; exec sleep 600";
    processes.start("deaf", Path::new("/bin/sh"), ["-c", script].map(OsString::from).into()).unwrap();
    let log = directory.path().join("logs").join("deaf.log");
    let hears_nothing = || {
        let said = fs::read_to_string(&log).unwrap_or_default();
        Look::reached_if(said == "deaf\n", || format!("it says {said:?}"))
    };
    processes.wait_until("deaf", "it ignores SIGTERM", hears_nothing).unwrap();

    let process = PathBuf::from(format!("/proc/{}", processes.components[0].child.id()));
    assert!(process.exists());
    processes.stop_within(Duration::from_millis(200)).unwrap();
    assert!(!process.exists(), "it is gone");
}
