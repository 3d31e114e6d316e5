//! The allocator of every guest.
//!
//! An instance answers one call and is then discarded. So nothing is ever freed, and each block is simply the next piece of memory. Stock
//! allocators begin by growing the memory, which costs the host two system calls and an inter-processor interrupt for every instance (about
//! 10 us of a 35 us call). This one first uses the rest of the memory that the module starts with.
#![allow(unsafe_code, reason = "an allocator hands out raw memory")]

use core::{
    alloc::{GlobalAlloc, Layout},
    arch::wasm32::{memory_grow, memory_size},
    cell::Cell,
    ptr,
};

const PAGE: usize = 65536;

/// Grows by at least this much, so that a large answer, which is built by doubling a string, does not grow page by page.
const GROWTH_PAGES: usize = 4;

unsafe extern "C" {
    /// Set by the linker: the end of the module's data and stack.
    static __heap_base: u8;
}

struct Bump {
    /// The first byte that is not handed out; 0 before the first block.
    next: Cell<usize>,
}

// SAFETY: a guest imports nothing and declares no shared memory, so it has one thread.
unsafe impl Sync for Bump {}

#[global_allocator]
static ALLOCATOR: Bump = Bump { next: Cell::new(0) };

impl Bump {
    /// Hands out the memory from `start` to `end`, and grows it if needed. Returns null if it cannot grow that far.
    fn take(&self, start: usize, end: Option<usize>) -> *mut u8 {
        let Some(end) = end else { return ptr::null_mut() };
        let have = memory_size(0) * PAGE;
        if end > have {
            let missing = (end - have).div_ceil(PAGE);
            // Near the memory limit, growing by more than needed may fail where growing by exactly enough succeeds.
            let generous = memory_grow(0, missing.max(GROWTH_PAGES));
            if generous == usize::MAX && memory_grow(0, missing) == usize::MAX {
                return ptr::null_mut();
            }
        }
        self.next.set(end);
        start as *mut u8
    }
}

// SAFETY: every block begins at or after the end of the one before it, is aligned as asked, and lies within the memory; a block
// that is extended in place is the last one.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let next = match self.next.get() {
            0 => &raw const __heap_base as usize,
            next => next,
        };
        let Some(start) = next.checked_next_multiple_of(layout.align()) else { return ptr::null_mut() };
        self.take(start, start.checked_add(layout.size()))
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let start = block as usize;
        if start + layout.size() == self.next.get() {
            return self.take(start, start.checked_add(new_size));
        }
        if new_size <= layout.size() {
            return block;
        }
        // SAFETY: the caller keeps `realloc`'s promises, so size and alignment are valid, and `block` holds `layout.size()` bytes.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
            if !new.is_null() {
                ptr::copy_nonoverlapping(block, new, layout.size());
            }
            new
        }
    }
}
