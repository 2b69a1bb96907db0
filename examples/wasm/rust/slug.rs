//! `slug(text) -> text`: a title as part of an address, and `seen(text) -> bigint`: how many rows of a table have it.
//!
//! Built without Cargo: `rustc --target wasm32-unknown-unknown --crate-type cdylib -O slug.rs`.

use std::alloc::Layout;

#[link(wasm_import_module = "threadgres")]
extern "C" {
    fn execute(sql: *const u8, length: usize, params: *const u8, params_length: usize) -> i32;
    fn cell_i64(result: i32, row: i32, column: i32) -> i64;
    fn rethrow();
}

/// Room for arguments, which the server asks for.
#[no_mangle]
pub extern "C" fn alloc(size: usize) -> *mut u8 {
    // SAFETY: the size isn't zero: the server asks for 4 KB at least.
    unsafe { std::alloc::alloc(Layout::from_size_align(size.max(8), 8).expect("a size")) }
}

/// The last result, which lies there until the next call.
static mut GIVEN: String = String::new();

fn give(text: String) -> i64 {
    let packed = (text.as_ptr() as i64) << 32 | text.len() as i64;
    // SAFETY: an instance runs one call at a time.
    unsafe { GIVEN = text };
    packed
}

/// # Safety
/// The server passes the address and the length of an argument.
unsafe fn taken<'a>(at: *const u8, length: usize) -> &'a str {
    std::str::from_utf8(std::slice::from_raw_parts(at, length)).unwrap_or_default()
}

#[no_mangle]
pub unsafe extern "C" fn slug(at: *const u8, length: usize) -> i64 {
    let mut out = String::with_capacity(length);
    for word in taken(at, length).split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
        if !out.is_empty() {
            out.push('-');
        }
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    give(out)
}

#[no_mangle]
pub unsafe extern "C" fn seen(at: *const u8, length: usize) -> i64 {
    let sql = "SELECT count(*) FROM articles WHERE slug = $1";
    let mut params = (length as i32).to_le_bytes().to_vec();
    params.extend_from_slice(taken(at, length).as_bytes());
    let result = execute(sql.as_ptr(), sql.len(), params.as_ptr(), params.len());
    if result < 0 {
        rethrow();
    }
    cell_i64(result, 0, 0)
}
