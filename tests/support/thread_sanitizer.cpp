// What the thread sanitizer cannot see for itself; every program of the preset tsan is linked with
// it.
//
// libgomp is not instrumented, so the sanitizer does not know that a parallel region begins after
// what its caller did before and ends before what the caller does next: it would call each loop of
// libtorch and of ours a race. GOMP_parallel is the one door to all of them, of the libraries too,
// and says both here. The regions themselves are looked at like any other code.
#include <dlfcn.h>

extern "C" {

void __tsan_acquire(void* address);
void __tsan_release(void* address);

namespace {

struct Region {
  void (*body)(void*);
  void* data;
};

void run_region(void* region) {
  __tsan_acquire(region);
  auto* of = static_cast<Region*>(region);
  of->body(of->data);
  __tsan_release(region);
}

}  // namespace

__attribute__((visibility("default"))) void GOMP_parallel(void (*body)(void*), void* data,
                                                          unsigned threads, unsigned flags) {
  using Parallel = void (*)(void (*)(void*), void*, unsigned, unsigned);
  static const auto parallel = reinterpret_cast<Parallel>(dlsym(RTLD_NEXT, "GOMP_parallel"));
  Region region{body, data};
  __tsan_release(&region);
  parallel(run_region, &region, threads, flags);
  __tsan_acquire(&region);
}

// Ranks of unit tests are forked processes.
__attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "die_after_fork=0";
}

// Libraries that are not instrumented, whose own order the sanitizer does not see. Ours are not
// hidden by this, for their names begin otherwise.
__attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return
      // An operation's object is freed by who lets go of it last, by counts in libtorch.
      "race:^c10d::\n"
      // So are the queues between the threads of its backward passes.
      "race:^torch::autograd::\n"
      // oneDNN keeps what it compiled under locks of its own.
      "race:^dnnl::\n"
      // ICU makes each table once, by locks of its own.
      "race:^icu_\n";
}

}  // extern "C"
