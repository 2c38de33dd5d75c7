#include "train/checkpoint/checkpoint_writer.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>

#include "base/clock.h"

namespace lockstep {

namespace {

// How much the writing thread yields to the training: at 10 it gets a tenth of a core that a thread
// of the training wants, and all of one that waits. On a machine crowded by others it still moves.
constexpr int kYield = 10;

// Lowers the calling thread's priority, where the system lets it; on Linux a thread has its own.
void yield_to_training() {
  const int now = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), now + kYield);
}

}  // namespace

WrittenCheckpoint write_now(const fs::path& folder, const CheckpointContent& content) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t bytes = save_checkpoint(folder, content);
  return {.step = content.position.step, .bytes = bytes, .seconds = seconds_since(start)};
}

void CheckpointWriter::start(const fs::path& folder, CheckpointContent content) {
  writing_ = std::async(std::launch::async, [folder, content = std::move(content)]() mutable {
    const CheckpointContent mine = std::move(content);  // its memory goes when it is written
    yield_to_training();
    return write_now(folder, mine);
  });
}

std::optional<WrittenCheckpoint> CheckpointWriter::take() {
  const bool done =
      writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  return done ? wait() : std::nullopt;
}

std::optional<WrittenCheckpoint> CheckpointWriter::wait() {
  if (!writing_.valid()) return std::nullopt;
  return writing_.get();
}

}  // namespace lockstep
