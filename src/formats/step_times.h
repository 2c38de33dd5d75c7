// Reads and writes where every rank's time went, step by step: RUN/times/attempt_N.bin. Rank 0
// writes it; `lockstep report` and `lockstep trace` read it (docs/formats.md#step-times). It is a
// binary table because a run may have a million steps. A file is only ever appended to.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

// The times of one rank in one step, in seconds by its own clock. The step's time is data + forward
// + backward + wait + optimizer + other.
struct RankTimes {
  float data = 0;       // waiting for the next batch
  float forward = 0;    // forward pass and loss of all micro-batches
  float backward = 0;   // gradients; exchanges that it overlaps run at the same time
  float wait = 0;       // waiting for other ranks and the network: exposed communication
  float optimizer = 0;  // gradient norm, clipping, update
  float other = 0;      // the rest: listeners, checks, synchronization of local steps
  float hidden = 0;     // part of forward and backward that overlaps an exchange; not in the sum
  float peers = 0;      // part of wait until the last rank began to wait: not due to the network
  float sent_bytes = 0, received_bytes = 0;  // payload of this rank's sockets and shared memory
};
inline constexpr int kRankTimesFields = 10;

// A rank is slow when it computes and reads this many times as long as the median of the others.
// The run warns of slow ranks, `lockstep watch` shows them and `lockstep report` lists them
// (docs/run-folder.md).
inline constexpr double kSlowRankFactor = 1.15;

struct StepTimes {
  int64_t step = 0;
  double begin = 0;              // when rank 0 began the step, in seconds since 1970 by its clock
  std::vector<RankTimes> ranks;  // by rank
};

// Appends steps to a file and buffers up to 64 kB. Throws MachineError when the disk refuses.
class StepTimesWriter {
 public:
  // Each attempt has its own file attempt_N.bin in `folder`, where N is one above the highest
  // number there (the first is 1). Folder and file are created when the first step is added.
  StepTimesWriter(fs::path folder, int ranks);
  ~StepTimesWriter();  // writes the buffered steps; logs a failure, never throws
  StepTimesWriter(const StepTimesWriter&) = delete;
  StepTimesWriter& operator=(const StepTimesWriter&) = delete;

  // Throws std::invalid_argument unless there are as many `ranks` as the constructor was given.
  void add(int64_t step, double begin, std::span<const RankTimes> ranks);
  // Steps that the disk refuses are dropped, so that the file always contains whole steps.
  void flush();

 private:
  void create();

  fs::path folder_, path_;
  int ranks_;
  int descriptor_ = -1;
  std::string pending_;
};

// Returns the files of a run's folder `times`, ordered by attempt; none if there is no such folder.
std::vector<fs::path> step_times_files(const fs::path& folder);

// Calls `f` for every step of a file in order and returns their number. All calls get the same
// StepTimes object. An incomplete last step is skipped. Throws DataError when the file is not one
// of step times.
int64_t read_step_times(const fs::path& file, const std::function<void(const StepTimes&)>& f);

// The extent of a file, taken from its first and last step; nothing for a file without steps.
struct StepTimesExtent {
  int ranks = 0;
  int64_t steps = 0, first = 0, last = 0;
};
std::optional<StepTimesExtent> step_times_extent(const fs::path& file);

}  // namespace lockstep
