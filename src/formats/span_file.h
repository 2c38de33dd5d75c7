// What every rank did within some steps, span by span: RUN/trace/steps_A-B.json, gathered and
// written by rank 0, read by `lockstep trace` (docs/formats.md#spans).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

// Rows of a rank's timeline.
enum class SpanRow : int32_t {
  kPhases,      // data, forward, backward, wait, optimizer, evaluation, checkpoint
  kExchange,    // buckets of gradients and other operations between the ranks
  kBackground,  // the thread that makes batches
};

struct Span {
  SpanRow row = SpanRow::kPhases;
  int32_t name = 0;   // index into RankSpans::names
  int64_t step = 0;   // that it belongs to
  double begin = 0;   // seconds since 1970, by the rank's own clock
  double length = 0;  // seconds
  int64_t bytes = 0;  // of an exchange's payload
};

struct RankSpans {
  int rank = 0;
  std::string host;
  int64_t process = 0;
  double clock_offset = 0;         // seconds: this rank's clock minus rank 0's
  double clock_uncertainty = 0;    // half of the shortest round trip that it was estimated from
  std::vector<std::string> names;  // "forward", "gradient bucket 3"
  std::vector<Span> spans;         // by begin
};

struct SpanFile {
  int64_t first_step = 0, last_step = 0;
  std::vector<RankSpans> ranks;
};

// Whole: beside it, then renamed; makes its folder. MachineError.
void write_span_file(const fs::path& path, const SpanFile& content);
// DataError with what is wrong and where.
SpanFile read_span_file(const fs::path& path);
// The files RUN/trace/steps_*.json, by first step.
std::vector<fs::path> span_files(const fs::path& run);

}  // namespace lockstep
