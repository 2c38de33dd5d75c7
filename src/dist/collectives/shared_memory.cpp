#include "dist/collectives/shared_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "base/error.h"

namespace lockstep {
namespace {

MachineError system_error(const std::string& what) {
  MachineError error("{}", what);
  error.set_cause(std::strerror(errno));
  return error;
}

}  // namespace

SharedMemory::SharedMemory(int descriptor, std::size_t bytes)
    : descriptor_(descriptor), size_(bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) {
    MachineError error = system_error("cannot map shared memory");
    close(descriptor);
    throw error;
  }
  madvise(mapped, bytes, MADV_HUGEPAGE);  // has an effect where the system allows it for shmem
  data_ = static_cast<std::byte*>(mapped);
}

SharedMemory SharedMemory::create(std::size_t bytes) {
  int descriptor = memfd_create("lockstep", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) throw system_error("cannot make shared memory");
  // The size is reserved now and sealed: a page that is missing later would
  // end a process by SIGBUS.
  int failure = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  if (failure != 0) {
    close(descriptor);
    errno = failure;
    throw system_error("cannot reserve shared memory");
  }
  fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return {descriptor, bytes};
}

SharedMemory SharedMemory::attach(pid_t process, int descriptor, std::size_t bytes) {
  std::string path = fmt::format("/proc/{}/fd/{}", process, descriptor);
  int mine = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (mine < 0) throw system_error("cannot open the shared memory " + path);
  struct stat status {};
  if (fstat(mine, &status) != 0 || static_cast<std::size_t>(status.st_size) != bytes) {
    close(mine);
    throw MachineError("{} is not the shared memory of these ranks", path);
  }
  return {mine, bytes};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(other.size_) {}

SharedMemory::~SharedMemory() {
  close_descriptor();
  if (data_ != nullptr) munmap(data_, size_);
}

void SharedMemory::close_descriptor() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

ProcessHandle::ProcessHandle(pid_t process)
    : number_(process), descriptor_(static_cast<int>(syscall(SYS_pidfd_open, process, 0))) {
  if (descriptor_ < 0) throw system_error(fmt::format("cannot watch the process {}", process));
}

ProcessHandle::ProcessHandle(ProcessHandle&& other) noexcept
    : number_(other.number_), descriptor_(std::exchange(other.descriptor_, -1)) {}

ProcessHandle::~ProcessHandle() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool ProcessHandle::alive() const {
  pollfd ended{descriptor_, POLLIN, 0};
  return poll(&ended, 1, 0) <= 0;
}

void sleep_while(const uint32_t* word, uint32_t value, std::chrono::nanoseconds limit) {
  constexpr int64_t kSecond = 1000000000;
  timespec time{static_cast<time_t>(limit.count() / kSecond), limit.count() % kSecond};
  syscall(SYS_futex, word, FUTEX_WAIT, value, &time, nullptr, 0);
}

void wake_all(const uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace lockstep
