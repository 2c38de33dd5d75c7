// For libraries of tests that come before libc: the address sanitizer, which wants to be the first
// itself, asks for its options here and lets them.
extern "C" const char* __asan_default_options();

extern "C" const char* __asan_default_options() { return "verify_asan_link_order=0"; }
