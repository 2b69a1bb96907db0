//! uuid-ossp: UUIDs of versions 1, 3, 4 and 5. Source: RFC 4122.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use base::Result;
use md5::Digest;
use types::Datum;
use types::extension::Library;
use types::func::Body;

use crate::common::{Bodies, random};

/// The extension's code.
pub static LIBRARY: Library = Library { name: "uuid-ossp", bodies, ..Library::EMPTY };

type Uuid = [u8; 16];

/// The name spaces differ in the fourth byte.
const fn name_space(of: u8) -> Uuid {
    [0x6b, 0xa7, 0xb8, of, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8]
}

fn made(mut uuid: Uuid, version: u8) -> Uuid {
    uuid[6] = uuid[6] & 0x0f | version << 4;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

fn datum(uuid: Uuid) -> Datum {
    Datum::Uuid(Arc::new(uuid))
}

/// Steps of 100 ns since 15 October 1582; each is given once in the life of the server.
fn moment() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = now.as_nanos() as u64 / 100 + 0x01b2_1dd2_1381_4000;
    let last = LAST.fetch_max(now, Ordering::Relaxed);
    if last < now { now } else { LAST.fetch_add(1, Ordering::Relaxed) + 1 }
}

/// Clock sequence and node of the server: random, as the RFC allows, with the bit of such nodes.
fn place() -> Result<[u8; 8]> {
    static PLACE: OnceLock<[u8; 8]> = OnceLock::new();
    if let Some(place) = PLACE.get() {
        return Ok(*place);
    }
    let mut place = [0; 8];
    random(&mut place)?;
    place[2] |= 0x03;
    Ok(*PLACE.get_or_init(|| place))
}

fn by_time(node: Option<[u8; 6]>) -> Result<Datum> {
    let (time, mut place) = (moment(), place()?);
    if let Some(node) = node {
        place[2..].copy_from_slice(&node);
    }
    let mut uuid = [0; 16];
    uuid[0..4].copy_from_slice(&(time as u32).to_be_bytes());
    uuid[4..6].copy_from_slice(&((time >> 32) as u16).to_be_bytes());
    uuid[6..8].copy_from_slice(&((time >> 48) as u16).to_be_bytes());
    uuid[8..].copy_from_slice(&place);
    Ok(datum(made(uuid, 1)))
}

fn of_name(args: &[Datum], version: u8, digest: impl Fn(&[u8], &[u8]) -> Uuid) -> Result<Datum> {
    let space = match &args[0] {
        Datum::Uuid(space) => **space,
        _ => [0; 16],
    };
    Ok(datum(made(digest(&space, args[1].as_str().as_bytes()), version)))
}

fn bodies() -> Bodies {
    vec![
        ("uuid_nil", Body::Scalar(|_, _| Ok(datum([0; 16])))),
        ("uuid_ns_dns", Body::Scalar(|_, _| Ok(datum(name_space(0x10))))),
        ("uuid_ns_url", Body::Scalar(|_, _| Ok(datum(name_space(0x11))))),
        ("uuid_ns_oid", Body::Scalar(|_, _| Ok(datum(name_space(0x12))))),
        ("uuid_ns_x500", Body::Scalar(|_, _| Ok(datum(name_space(0x14))))),
        ("uuid_generate_v1", Body::Scalar(|_, _| by_time(None))),
        (
            "uuid_generate_v1mc",
            Body::Scalar(|_, _| {
                let mut node = [0; 6];
                random(&mut node)?;
                node[0] |= 0x03;
                by_time(Some(node))
            }),
        ),
        (
            "uuid_generate_v3",
            Body::Scalar(|args, _| {
                of_name(args, 3, |space, name| {
                    let digest = md5::Md5::new().chain_update(space).chain_update(name).finalize();
                    digest.into()
                })
            }),
        ),
        (
            "uuid_generate_v4",
            Body::Scalar(|_, _| {
                let mut uuid = [0; 16];
                random(&mut uuid)?;
                Ok(datum(made(uuid, 4)))
            }),
        ),
        (
            "uuid_generate_v5",
            Body::Scalar(|args, _| {
                of_name(args, 5, |space, name| {
                    let digest: [u8; 20] =
                        sha1::Sha1::new().chain_update(space).chain_update(name).finalize().into();
                    let mut uuid = [0; 16];
                    uuid.copy_from_slice(&digest[..16]);
                    uuid
                })
            }),
        ),
    ]
}
