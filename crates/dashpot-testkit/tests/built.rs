//! Where the files of a package's tests are modules of one program, none is forgotten: a file that nobody
//! names would never run, and nothing would say so.

use std::fs;
use std::path::Path;

#[test]
fn no_test_is_forgotten() {
    let mut programs = 0;
    for package in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap() {
        let package = package.unwrap().path();
        let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
        if !manifest.lines().any(|line| line == "autotests = false") {
            continue;
        }
        let tests = package.join("tests");
        let all = fs::read_to_string(tests.join("all.rs")).unwrap();
        programs += 1;
        for test in fs::read_dir(&tests).unwrap() {
            let test = test.unwrap().path();
            let name = test.file_stem().unwrap().to_str().unwrap();
            let is_test = test.extension().is_some_and(|extension| extension == "rs")
                || test.join("mod.rs").exists()
                || test.join("main.rs").exists();
            let is_built = all.lines().any(|line| line == format!("mod {name};"))
                || manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
            assert!(is_built || !is_test, "{} is not in all.rs", test.display());
        }
    }
    assert!(programs > 0);
}
