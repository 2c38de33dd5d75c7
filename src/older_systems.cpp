// Functions of newer C and C++ libraries that lockstep and the libraries it links to call, so that
// what was built with these libraries runs on systems with older ones as well (glibc 2.34 and GCC
// 11's libstdc++): the loader looks into the program first. packaging/wheel.py has it not ask the
// system for them.
#include <pthread.h>
#include <sys/random.h>

#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <utility>

// glibc 2.36. libarchive calls it to encrypt zip files.
extern "C" void arc4random_buf(void* buffer, std::size_t size) noexcept {
  auto* at = static_cast<char*>(buffer);
  while (size > 0) {
    const ssize_t n = ::getrandom(at, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) std::abort();  // as the original
    at += n;
    size -= static_cast<std::size_t>(n);
  }
}

// GLIBCXX_3.4.30 is the version of it that may throw, as thread cancellation does (GCC 12; its
// header says so, that of GCC 11 noexcept); the same otherwise.
void std::condition_variable::wait(std::unique_lock<std::mutex>& lock) noexcept(
    noexcept(std::declval<std::condition_variable&>().wait(lock))) {
  ::pthread_cond_wait(native_handle(), lock.mutex()->native_handle());
}
