//! How the C library's allocator is set.

/// Blocks of this many bytes and more are given back to the system when they are freed: replies and pages of lists are, objects that
/// are kept are not.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const GIVEN_BACK_BYTES: i32 = 64 << 10;

/// Has all threads share one heap. glibc gives nearly each thread one of its own, and what a thread frees stays there: with 1000 roots
/// of four children, whose kept form takes 5.5 MB, the heaps of a host that just started took 34 MB, one heap takes 20 MB, at the same
/// CPU time. It must be called before threads are started. Other C libraries are left as they are.
#[cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    allow(unsafe_code, reason = "the C library is set by a call")
)]
pub(crate) fn share_one_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt only sets numbers of the allocator, and no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, GIVEN_BACK_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, GIVEN_BACK_BYTES);
    }
}
