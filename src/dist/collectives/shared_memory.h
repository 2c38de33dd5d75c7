// Provides memory that processes of one machine share. The memory has no name in any file system:
// it is a memfd (memfd_create(2)) that the others open through /proc, and it disappears with the
// last process that maps it, however that process ends. The size of /dev/shm does not limit it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace lockstep {

class SharedMemory {
 public:
  // Creates memory filled with zeros. The descriptor stays open until close_descriptor(). Throws
  // MachineError when there is not that much memory.
  static SharedMemory create(std::size_t bytes);
  // Maps the memory that another process created and still holds open as `descriptor`. Throws
  // MachineError when it cannot be opened (another user's process, no /proc) or has another size.
  static SharedMemory attach(pid_t process, int descriptor, std::size_t bytes);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  std::byte* data() const { return data_; }  // page-aligned
  std::size_t size() const { return size_; }
  int descriptor() const { return descriptor_; }  // -1: closed
  void close_descriptor();

 private:
  SharedMemory(int descriptor, std::size_t bytes);

  int descriptor_;
  std::byte* data_ = nullptr;
  std::size_t size_;
};

// Tells whether another process still runs, by a pidfd (pidfd_open(2)), which cannot be mistaken
// for a later process with the same number and which knows of the end before the parent has reaped
// the process.
class ProcessHandle {
 public:
  explicit ProcessHandle(pid_t process);  // throws MachineError: no such process, or an old kernel
  ProcessHandle(ProcessHandle&& other) noexcept;
  ProcessHandle& operator=(ProcessHandle&&) = delete;
  ~ProcessHandle();

  pid_t number() const { return number_; }
  bool alive() const;

 private:
  pid_t number_;
  int descriptor_;
};

// futex(2) on a word in shared memory: sleep_while() sleeps while the word holds `value`, at most
// `limit`, and may wake early; wake_all() wakes every sleeper.
void sleep_while(const uint32_t* word, uint32_t value, std::chrono::nanoseconds limit);
void wake_all(const uint32_t* word);

}  // namespace lockstep
