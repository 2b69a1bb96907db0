//! The fuzzers' corpus through the fuzzers' functions; then each file cut short and with a byte changed,
//! which needs no nightly compiler.

use std::path::Path;

fn corpus(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files: Vec<_> = std::fs::read_dir(&folder).expect("the corpus is kept").flatten().collect();
    assert!(files.len() >= 5, "{target} has a corpus");
    for file in files {
        let bytes = std::fs::read(file.path()).expect("a file of the corpus can be read");
        run(&bytes);
        for cut in 0..bytes.len() {
            run(&bytes[..cut]);
            for value in [0, 0xff, bytes[cut] ^ 1, bytes[cut].wrapping_add(1)] {
                let mut changed = bytes.clone();
                changed[cut] = value;
                run(&changed);
            }
        }
    }
}

#[test]
fn messages_never_panic() {
    corpus("frames", wire::fuzz::frames);
}

#[test]
fn first_packets_never_panic() {
    corpus("startup", wire::fuzz::startup);
}

#[test]
fn scram_never_panics() {
    corpus("scram", wire::fuzz::scram);
}
