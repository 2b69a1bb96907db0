//! Lends the running statement to JavaScript for the length of one call.
//!
//! Functions that JavaScript calls live as long as their context; the [`exec::ExecContext`] that they need lives as
//! long as one statement. A [`Lent`] holds a pointer to whoever has the latter while a call runs, and nothing between
//! calls.
//!
//! Invariants: the pointer is set only while the frame of [`Lent::scope`] that it points into is alive, and it is
//! taken out while it is used, so that there is never a second reference to the host.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, Ordering};

use rquickjs::{Ctx, Function, JsLifetime, Value};

/// The answerer of JavaScript's requests to the server.
pub trait Host {
    /// The answer to a request; its number is the first argument (see [`crate::api`]).
    ///
    /// # Errors
    /// An exception, thrown in the context.
    fn call<'js>(&mut self, ctx: &Ctx<'js>, args: Vec<Value<'js>>) -> rquickjs::Result<Value<'js>>;
}

/// See the module.
#[derive(Default)]
pub struct Lent {
    frame: AtomicPtr<&'static mut dyn Host>,
}

/// Puts a pointer back, also when a panic unwinds.
struct Back<'a>(&'a Lent, *mut &'static mut dyn Host);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.0.frame.store(self.1, Ordering::Release);
    }
}

impl Lent {
    /// Runs `body`, during which [`Lent::call`] reaches the host.
    pub fn scope<R>(&self, host: &mut dyn Host, body: impl FnOnce() -> R) -> R {
        let mut host: &mut dyn Host = host;
        let frame = (&raw mut host).cast::<&'static mut dyn Host>();
        let _back = Back(self, self.frame.swap(frame, Ordering::AcqRel));
        body()
    }

    /// Calls `f` with the host; None outside of a scope, or when the host is at work already.
    pub fn call<R>(&self, f: impl FnOnce(&mut dyn Host) -> R) -> Option<R> {
        let frame = self.frame.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if frame.is_null() {
            return None;
        }
        let _back = Back(self, frame);
        // SAFETY: the pointer is set by `scope`, whose frame is below this one on the stack, since a context runs on
        // one thread at a time and the pointer is taken back when `scope` ends. It was taken out, so that this is
        // the only reference. The lifetime is cut to that of the call, since `f` takes any.
        let host = unsafe { &mut *frame };
        Some(f(&mut **host))
    }
}

/// The functions that a context has compiled, by number of their routine.
#[derive(Default)]
pub struct Functions<'js>(pub RefCell<HashMap<u64, Function<'js>>>);

// SAFETY: the type is the same but for the lifetime of the context.
unsafe impl<'js> JsLifetime<'js> for Functions<'js> {
    type Changed<'to> = Functions<'to>;
}

/// A copy of what a `Uint8Array` or an `ArrayBuffer` holds; None for other values.
pub fn copied_bytes(value: &Value<'_>) -> Option<Vec<u8>> {
    let object = value.as_object()?;
    let typed = object.as_typed_array::<u8>();
    // SAFETY: no JavaScript, which could change or detach the buffer, runs between the look and the copy.
    let bytes = unsafe {
        match typed {
            Some(array) => array.as_bytes(),
            None => object.as_array_buffer()?.as_bytes(),
        }
    };
    bytes.map(<[u8]>::to_vec)
}
