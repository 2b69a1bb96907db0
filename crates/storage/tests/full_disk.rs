//! A full disk. Needs a small file system of its own, so it runs on request only:
//! `mount -t tmpfs -o size=8m none DIR`, then
//! `SMALL_DISK=DIR cargo test -p storage --test full_disk -- --ignored`.

mod common;

use base::{Fork, PageId, RelId};
use common::*;
use storage::Storage;

const REL: RelId = RelId(45000);

#[test]
#[ignore = "needs a small file system"]
fn extending_on_a_full_disk_is_a_clean_error() {
    let Some(small) = std::env::var_os("SMALL_DISK") else { panic!("SMALL_DISK is not set") };
    let dir = TempDir(std::path::Path::new(&small).join("data"));
    let (storage, _) = open(&dir, &tiny());
    make_relation(&storage, REL, 10);
    let mut blocks = 10;
    let error = loop {
        match storage.extend(REL, Fork::Main, 64) {
            Ok(first) => {
                assert_eq!(first, blocks);
                blocks += 64;
            }
            Err(e) => break e,
        }
    };
    assert_eq!(error.code().as_str(), "53100");
    assert!(error.fields().hint.is_some());
    assert_eq!(storage.block_count(REL, Fork::Main).unwrap(), blocks);
    // Pages that are there can still be used, and room that comes back too.
    put(&storage, PageId::main(REL, blocks - 1), 100, b"last");
    storage.truncate(REL, Fork::Main, 20).unwrap();
    assert_eq!(storage.extend(REL, Fork::Main, 64).unwrap(), 20);
    put(&storage, PageId::main(REL, 40), 100, b"more");
    storage.shutdown().unwrap();
    drop(storage);
    assert!(Storage::status(&dir.0).unwrap().clean);
    let (storage, _) = open(&dir, &tiny());
    assert_eq!(body(&storage, PageId::main(REL, 40))[84..88], *b"more");
}
