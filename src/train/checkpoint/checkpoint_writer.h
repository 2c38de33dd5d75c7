// Writes checkpoints beside the training (docs/run-folder.md#checkpoints): the training stands
// still only while its state is copied, and a thread of lower priority writes the copy.
#pragma once

#include <cstdint>
#include <future>
#include <optional>

#include "base/file.h"
#include "train/checkpoint/checkpoint.h"

namespace lockstep {

struct WrittenCheckpoint {
  int64_t step = 0, bytes = 0;
  double seconds = 0;  // of writing
};

// Saves FOLDER/step_N as save_checkpoint() does, and times it.
WrittenCheckpoint write_now(const fs::path& folder, const CheckpointContent& content);

// Of one thread; the destructor waits for a checkpoint that is under way.
class CheckpointWriter {
 public:
  // Begins to write FOLDER/step_N. `content` is an own_copy(), whose parameters outlive this.
  // REQUIRES that nothing is under way or untold.
  void start(const fs::path& folder, CheckpointContent content);

  // Each checkpoint is told once, when it is complete, by one of these: take() returns at once,
  // with nothing while it is under way; wait() waits for it, and returns nothing when there is
  // none. Both throw what save_checkpoint() threw.
  std::optional<WrittenCheckpoint> take();
  std::optional<WrittenCheckpoint> wait();

 private:
  std::future<WrittenCheckpoint> writing_;
};

}  // namespace lockstep
