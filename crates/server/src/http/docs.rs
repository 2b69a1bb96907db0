//! The documents: `/docs/…` serves the book that an installation has beside its program (`make book`), so that it is there where the
//! network isn't.
//!
//! ```text
//!   PREFIX/bin/threadgres    PREFIX/share/doc/threadgres/html/index.html
//!   target/debug/threadgres  target/share/doc/threadgres/html/index.html
//! ```
//!
//! Nobody is asked for a password: the book is the same for everybody and says nothing of the server. Only plain names are files: no
//! part of a path begins with a dot or has other letters than those of the book's files, and what a symbolic link leads out of the
//! book is not served. The book's pages have scripts of their own inside; each is allowed by its hash, so that nothing that somebody
//! else could put into a page would run.
//!
//! A file is read by the thread that answers: the book is small, and the next request finds it in the system's cache.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::response::Response;

/// Where the book is, from the folder above the program's.
const BOOK: &str = "share/doc/threadgres/html";
/// Files that are larger are none of the book's.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// The part of a path below `/docs`, if it is there.
pub fn below(path: &str) -> Option<&str> {
    path.strip_prefix("/docs").filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The answer to a request for a part of the book.
pub fn answer(rest: &str) -> Response {
    let Some(name) = rest.strip_prefix('/') else { return Response::moved("/docs/") };
    match beside_program() {
        Some(book) => file_of(book, name).unwrap_or_else(|| Response::fail(404, "no such page")),
        None => Response::fail(404, "no documents lie beside this program: make book builds them"),
    }
}

/// The book's folder.
fn beside_program() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let program = std::env::current_exe().ok()?;
        Some(program.parent()?.parent()?.join(BOOK))
    });
    // It may be made while the server runs.
    folder.as_deref().filter(|folder| folder.is_dir())
}

fn file_of(book: &Path, name: &str) -> Option<Response> {
    let name = match name.strip_suffix('/') {
        Some(folder) => format!("{folder}/index.html"),
        None if name.is_empty() => "index.html".to_owned(),
        None => name.to_owned(),
    };
    let kind = media_type(name.rsplit_once('.')?.1)?;
    if !name.split('/').all(is_plain) {
        return None;
    }
    let book = book.canonicalize().ok()?;
    let path = book.join(name).canonicalize().ok()?;
    let about = path.metadata().ok()?;
    if !path.starts_with(&book) || !about.is_file() || about.len() > FILE_BYTES_MAX {
        return None;
    }
    let content = std::fs::read(&path).ok()?;
    let scripts =
        if kind.starts_with("text/html") { inline_scripts(&content) } else { String::new() };
    Some(Response { scripts, ..Response::ok(kind, content) })
}

fn is_plain(part: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(plain)
}

fn media_type(ending: &str) -> Option<&'static str> {
    Some(match ending {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        _ => return None,
    })
}

/// The hashes of a page's own scripts, as a policy names them.
fn inline_scripts(page: &[u8]) -> String {
    let Ok(page) = std::str::from_utf8(page) else { return String::new() };
    let scripts = page.split("<script>").skip(1).filter_map(|rest| rest.split("</script>").next());
    let mut out = String::new();
    for script in scripts {
        out += &format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(script)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_book_are_served() {
        let dir = std::env::temp_dir().join(format!("threadgres-docs-{}", std::process::id()));
        let book = dir.join("book");
        let write = |name: &str, text: &str| {
            let path = dir.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
            std::fs::write(path, text).expect("it can be written");
        };
        write("secret.html", "not for you");
        write("book/index.html", "<script>go()</script>");
        write("book/a/page-1.html", "page");
        write("book/.hidden.html", "hidden");
        write("book/tool.exe", "tool");
        std::os::unix::fs::symlink(dir.join("secret.html"), book.join("out.html")).expect("a link");
        for (name, body) in [("", "<script>go()</script>"), ("a/page-1.html", "page")] {
            let answer = file_of(&book, name).expect(name);
            assert_eq!(String::from_utf8_lossy(&answer.body), body);
        }
        let hash = " 'sha256-fPpQ+xO8F54LmLpo9vQd0wJDj8+7Yn7k0fXcCwV7Q3A='".len();
        assert_eq!(file_of(&book, "").expect("the first page").scripts.len(), hash);
        let outside = [
            "../secret.html",
            "a/../../secret.html",
            "/secret.html",
            "//etc/passwd",
            "out.html",
            "%2e%2e/secret.html",
            "..%2fsecret.html",
            "a/./page-1.html",
            ".hidden.html",
            "tool.exe",
            "a",
            "a/",
            "none.html",
            "a/page-1.html/",
            "a\\..\\..\\secret.html",
            "\0.html",
        ];
        for name in outside {
            assert!(file_of(&book, name).is_none(), "{name:?}");
        }
        assert_eq!(
            [below("/docs"), below("/docs/a"), below("/docsa")],
            [Some(""), Some("/a"), None]
        );
        std::fs::remove_dir_all(&dir).expect("it is ours");
    }
}
