//! The classes of `java/` compiled by the JVM itself, for programs that were built without a compiler for Java.

use std::path::{Path, PathBuf};
use std::{fs, io};

use base::{Error, Result, err};
use jni_sys as sys;

use crate::classes::SOURCES;
use crate::jvm::{Env, jni};

/// A folder that goes with this.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Folder> {
        let path = std::env::temp_dir().join(format!("threadgres-java-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("classes"))?;
        Ok(Folder(path))
    }

    /// Writes the sources, and gives their files.
    fn fill(&self) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for (name, text) in SOURCES {
            let file = self.0.join("sources").join(name);
            fs::create_dir_all(file.parent().unwrap_or(&self.0))?;
            fs::write(&file, text)?;
            files.push(file);
        }
        Ok(files)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn classes(folder: &Path, out: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => classes(&path, out)?,
            false => out.push(path),
        }
    }
    Ok(())
}

fn pack(root: &Path) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut files = Vec::new();
    classes(root, &mut files)?;
    let (mut boot, mut others, mut count) = (Vec::new(), Vec::new(), 0u32);
    for file in files {
        let bytes = fs::read(&file)?;
        let name = file.strip_prefix(root).unwrap_or(&file).with_extension("");
        let name = name.to_string_lossy().replace('/', ".");
        if name == "threadgres.Boot" {
            boot = bytes;
            continue;
        }
        others.extend_from_slice(&(name.len() as u16).to_be_bytes());
        others.extend_from_slice(name.as_bytes());
        others.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        others.extend_from_slice(&bytes);
        count += 1;
    }
    let mut packed = count.to_be_bytes().to_vec();
    packed.extend(others);
    Ok((boot, packed))
}

/// The class `Boot`, and all others as it takes them.
///
/// # Errors
/// `58000` when the JVM has no compiler, or that fails.
pub fn compiled(env: Env) -> Result<(Vec<u8>, Vec<u8>)> {
    let no = |error: io::Error| Error::io("could not write the sources of Java's classes", &error);
    let none = || {
        err!(SYSTEM_ERROR, "Java's classes could not be compiled")
            .detail("The server was built without a compiler for Java, and this Java has none.")
            .hint("Install a JDK (Debian: openjdk-17-jdk-headless), or set java_home to one.")
    };
    let folder = Folder::new().map_err(no)?;
    let sources = folder.fill().map_err(no)?;
    let target = folder.0.join("classes");
    let mut words: Vec<String> =
        ["-nowarn", "-encoding", "UTF-8", "-d"].into_iter().map(str::to_owned).collect();
    words.push(target.display().to_string());
    words.extend(sources.iter().map(|f| f.display().to_string()));
    let tools = env.class(c"javax/tools/ToolProvider").map_err(|_| none())?;
    let find = env.method(tools, c"getSystemJavaCompiler", c"()Ljavax/tools/JavaCompiler;")?;
    let compiler = env.object(tools, find, &[]).map_err(|_| none())?;
    if compiler.is_null() {
        return Err(none());
    }
    let tool = env.class(c"javax/tools/Tool")?;
    let strings = env.class(c"java/lang/String")?;
    let signature =
        c"(Ljava/io/InputStream;Ljava/io/OutputStream;Ljava/io/OutputStream;[Ljava/lang/String;)I";
    // SAFETY: references and texts are live; the array has as many places as there are words, and the method takes
    // three objects that may be null, and an array of texts.
    let result = unsafe {
        let run = jni!(env, GetMethodID, tool, c"run".as_ptr(), signature.as_ptr());
        let list =
            jni!(env, NewObjectArray, words.len() as sys::jsize, strings, std::ptr::null_mut());
        for (n, word) in words.iter().enumerate() {
            let units: Vec<u16> = word.encode_utf16().collect();
            let text = jni!(env, NewString, units.as_ptr(), units.len() as sys::jsize);
            jni!(env, SetObjectArrayElement, list, n as sys::jsize, text);
        }
        let null = sys::jvalue { l: std::ptr::null_mut() };
        let args = [null, null, null, sys::jvalue { l: list }];
        jni!(env, CallIntMethodA, compiler, run, args.as_ptr())
    };
    env.checked((), "the compiler failed")?;
    if result != 0 {
        return Err(err!(SYSTEM_ERROR, "Java's classes could not be compiled")
            .detail("The server's log has what the compiler says."));
    }
    pack(&target).map_err(no)
}
