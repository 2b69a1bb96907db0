//! Walking a copied stack: the call frame information of the program and its libraries says where
//! each return address is (DWARF 5, section 6.4; `framehop` reads it).
//!
//! Only the copy is read, so a wrong turn ends the walk and touches nothing. At a coroutine's base
//! the next frame would be on its worker's stack, which is not in the copy: the walk ends there, at
//! the statement's first frame.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module,
    UnwindRegsNative, Unwinder as _, UnwinderNative,
};
use object::elf::PF_X;
use object::{Object, ObjectSection, ObjectSegment, ReadCache, ReadRef, SegmentFlags};
use object::{ObjectSymbol, SymbolKind};

/// Frames of one stack; what is above is left out.
const FRAMES_MAX: usize = 256;

const PAGE: u64 = 4096;

type Bytes = Vec<u8>;

/// Knows the program and its libraries as they were mapped when it was made.
pub struct Unwinder {
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

impl Unwinder {
    /// Reads what is mapped. A file that can't be read is left out: stacks end in it.
    pub fn new() -> Unwinder {
        let mut unwinder = UnwinderNative::new();
        for mapping in mappings() {
            if let Some(module) = mapping.module() {
                unwinder.add_module(module);
            }
        }
        Unwinder { unwinder, cache: CacheNative::new() }
    }

    /// The addresses of a stack, innermost first: an instruction of each call that is under way.
    pub fn walk(&mut self, registers: [u64; 4], stack: &[u8]) -> Vec<u64> {
        let [pc, sp, fp, lr] = registers;
        let mut read = |address: u64| {
            let at = address.checked_sub(sp).ok_or(())? as usize;
            let bytes = stack.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
            bytes.try_into().map(u64::from_ne_bytes).map_err(|_| ())
        };
        let regs = native(pc, sp, fp, lr);
        let mut frames = self.unwinder.iter_frames(pc, regs, &mut self.cache, &mut read);
        let mut out = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            if out.len() == FRAMES_MAX {
                break;
            }
            out.push(match frame {
                FrameAddress::InstructionPointer(address) => address,
                // The call is before the instruction that it returns to.
                FrameAddress::ReturnAddress(address) => address.get() - 1,
            });
        }
        out
    }
}

#[cfg(target_arch = "x86_64")]
fn native(pc: u64, sp: u64, fp: u64, _lr: u64) -> UnwindRegsNative {
    UnwindRegsNative::new(pc, sp, fp)
}

#[cfg(target_arch = "aarch64")]
fn native(_pc: u64, sp: u64, fp: u64, lr: u64) -> UnwindRegsNative {
    UnwindRegsNative::new(lr, sp, fp)
}

/// A stretch of executable memory.
#[derive(Debug, PartialEq)]
struct Mapping {
    range: Range<u64>,
    offset: u64,
    path: String,
}

/// The executable mappings of this process.
fn mappings() -> Vec<Mapping> {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    text.lines().filter_map(parse_mapping).collect()
}

/// `start-end perms offset device inode path`, of executable mappings only.
fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let executable = fields.next()?.contains('x');
    let hex = |s: &str| u64::from_str_radix(s, 16).ok();
    let (range, offset) = (hex(start)?..hex(end)?, hex(fields.next()?)?);
    let path = fields.nth(2)?.to_owned();
    let known = path.starts_with('/') || path == "[vdso]";
    (executable && known).then_some(Mapping { range, offset, path })
}

impl Mapping {
    fn module(&self) -> Option<Module<Bytes>> {
        if self.path == "[vdso]" {
            let mut image = vec![0; (self.range.end - self.range.start) as usize];
            File::open("/proc/self/mem").ok()?.read_exact_at(&mut image, self.range.start).ok()?;
            return self.module_of(image.as_slice());
        }
        self.module_of(&ReadCache::new(self.open()?))
    }

    /// The mapped file. The program's own may have been replaced by a newer build since its start.
    fn open(&self) -> Option<File> {
        let path = if self.is_program() { "/proc/self/exe" } else { &self.path };
        File::open(path).ok()
    }

    fn is_program(&self) -> bool {
        let link = std::fs::read_link("/proc/self/exe");
        // A replaced file's path has a word behind it.
        link.is_ok_and(|exe| {
            let exe = exe.to_string_lossy();
            exe.strip_suffix(" (deleted)").unwrap_or(&exe) == self.path
        })
    }

    /// Where the file's address 0 is in memory: its executable segment is what is mapped here.
    fn base<'a>(&self, object: &impl Object<'a>) -> Option<u64> {
        let segment = object.segments().find(|s| {
            let (offset, size) = s.file_range();
            let executable =
                matches!(s.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.contains(PF_X));
            executable && (offset / PAGE * PAGE..=offset + size).contains(&self.offset)
        })?;
        let (offset, _) = segment.file_range();
        Some(
            self.range
                .start
                .wrapping_sub(self.offset)
                .wrapping_sub(segment.address().wrapping_sub(offset)),
        )
    }

    fn module_of<'a>(&self, data: impl ReadRef<'a>) -> Option<Module<Bytes>> {
        let object = object::File::parse(data).ok()?;
        let base = self.base(&object)?;
        let section = |name: &str| {
            let section = object.section_by_name(name)?;
            let range = section.address()..section.address() + section.size();
            Some((range, section.uncompressed_data().ok()?.into_owned()))
        };
        let range = |name: &str| section(name).map(|s| s.0);
        let (eh_frame_svma, eh_frame) = section(".eh_frame").unzip();
        let (eh_frame_hdr_svma, eh_frame_hdr) = section(".eh_frame_hdr").unzip();
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: range(".text"),
            got_svma: range(".got"),
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            ..ExplicitModuleSectionInfo::default()
        };
        Some(Module::new(self.path.clone(), self.range.clone(), base, info))
    }
}

/// The program's functions with their full names, by address. (The debug information that a release
/// has names them without their modules.)
#[derive(Default)]
pub struct Functions {
    /// First address, length, mangled name; ascending.
    all: Vec<(u64, u64, String)>,
}

impl Functions {
    /// Reads the program's table of symbols; empty when it was stripped.
    pub fn of_program() -> Functions {
        let mut all = Vec::new();
        for mapping in mappings().iter().filter(|m| m.is_program()) {
            mapping.functions(&mut all);
        }
        all.sort_unstable();
        Functions { all }
    }

    /// The function at an address, demangled, without the hash.
    pub fn name(&self, address: u64) -> Option<String> {
        let at = self.all.partition_point(|f| f.0 <= address).checked_sub(1)?;
        let (start, length, name) = &self.all[at];
        let inside = address - start < *length;
        inside.then(|| format!("{:#}", backtrace::SymbolName::new(name.as_bytes())))
    }
}

impl Mapping {
    fn functions(&self, into: &mut Vec<(u64, u64, String)>) -> Option<()> {
        let cache = ReadCache::new(self.open()?);
        let object = object::File::parse(&cache).ok()?;
        let base = self.base(&object)?;
        let functions = object.symbols().filter(|s| s.kind() == SymbolKind::Text && s.size() > 0);
        into.extend(functions.filter_map(|s| {
            Some((base.wrapping_add(s.address()), s.size(), s.name().ok()?.to_owned()))
        }));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read() {
        let line = "7f00-7f10 r-xp 00002000 fe:00 1234 /usr/lib/libc.so.6";
        let want =
            Mapping { range: 0x7f00..0x7f10, offset: 0x2000, path: "/usr/lib/libc.so.6".into() };
        assert_eq!(parse_mapping(line), Some(want));
        assert_eq!(parse_mapping("7f00-7f10 rw-p 00002000 fe:00 1234 /usr/lib/libc.so.6"), None);
        assert_eq!(parse_mapping("7f00-7f10 rw-p 00000000 00:00 0"), None);
        assert!(mappings().iter().filter_map(Mapping::module).count() > 1);
    }

    #[test]
    fn functions_have_their_full_names() {
        let address = super::parse_mapping as *const () as u64;
        let name = Functions::of_program().name(address + 1).unwrap();
        assert_eq!(name, "server::profiler::unwind::parse_mapping");
    }

    #[test]
    fn a_stack_of_nonsense_ends_the_walk() {
        let mut unwinder = Unwinder::new();
        let pc = a_stack_of_nonsense_ends_the_walk as *const () as u64;
        for fill in [0u8, 0x41, 0xff] {
            let frames = unwinder.walk([pc, 0x1000, 0x1008, 0], &[fill; 4096]);
            assert!(frames.len() <= FRAMES_MAX);
            assert_eq!(frames[0], pc);
        }
        assert_eq!(unwinder.walk([pc, u64::MAX - 4, 0, 0], &[]), [pc]);
    }
}
