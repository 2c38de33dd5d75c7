// Where every rank's time went, step by step: RUN/times/attempt_N.bin, written by rank 0 and read
// by `lockstep report` and `lockstep trace` (docs/formats.md#step-times). A binary table, since
// a run of a million steps has many; a file is only ever appended to.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

// One rank in one step; seconds by its own clock. data + forward + backward + wait + optimizer +
// other is the step's time.
struct RankTimes {
  float data = 0;       // waits for the next batch
  float forward = 0;    // and the loss, of all micro-batches
  float backward = 0;   // gradients; exchanges that it hides run beside it
  float wait = 0;       // for other ranks and the network: exposed communication
  float optimizer = 0;  // norm, clipping, update
  float other = 0;      // what is left: listeners, checks, meetings of local steps
  float hidden = 0;     // of forward and backward, while an exchange was under way: not in the sum
  float peers = 0;      // of wait, until the last rank had begun to wait: not the network's
  float sent_bytes = 0, received_bytes = 0;  // by this rank's sockets and shared memory, payload
};
inline constexpr int kRankTimesFields = 10;

// A rank that computes and reads this many times as long as the median of the others is slow: what
// the run warns of, `lockstep watch` shows and `lockstep report` finds (docs/run-folder.md).
inline constexpr double kSlowRankFactor = 1.15;

struct StepTimes {
  int64_t step = 0;
  double begin = 0;              // seconds since 1970, by rank 0's clock: when rank 0 began it
  std::vector<RankTimes> ranks;  // by rank
};

// Appends; buffers up to 64 kB. Throws MachineError when the disk refuses.
class StepTimesWriter {
 public:
  // A file of its own for each attempt: attempt_N.bin in `folder`, N one above the highest there
  // (the first is 1). Folder and file are made with the first step that is added.
  StepTimesWriter(fs::path folder, int ranks);
  ~StepTimesWriter();  // writes what is left; a failure is logged, not thrown
  StepTimesWriter(const StepTimesWriter&) = delete;
  StepTimesWriter& operator=(const StepTimesWriter&) = delete;

  // std::invalid_argument where `ranks` are not as many as were announced.
  void add(int64_t step, double begin, std::span<const RankTimes> ranks);
  // What the disk refused is dropped, so that the file stays one of whole steps.
  void flush();

 private:
  void create();

  fs::path folder_, path_;
  int ranks_;
  int descriptor_ = -1;
  std::string pending_;
};

// The files of a run's folder `times`, by attempt; none where there is no such folder.
std::vector<fs::path> step_times_files(const fs::path& folder);

// Calls `f` for every step of a file, in its order, with the same StepTimes each time; returns how
// many. A last step that was cut short is passed over. DataError for what is not such a file.
int64_t read_step_times(const fs::path& file, const std::function<void(const StepTimes&)>& f);

// What a file holds, from its first and last step; nothing for a file without steps.
struct StepTimesExtent {
  int ranks = 0;
  int64_t steps = 0, first = 0, last = 0;
};
std::optional<StepTimesExtent> step_times_extent(const fs::path& file);

}  // namespace lockstep
