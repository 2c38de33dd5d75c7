// Reads and writes the file of what every rank did during some steps, as spans:
// RUN/trace/steps_A-B.json. Rank 0 gathers and writes it; `lockstep trace` reads it
// (docs/formats.md#spans).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

// The rows of a rank's timeline.
enum class SpanRow : int32_t {
  kPhases,      // data, forward, backward, wait, optimizer, evaluation, checkpoint
  kExchange,    // gradient buckets and other operations between ranks
  kBackground,  // the thread that prepares batches
};

struct Span {
  SpanRow row = SpanRow::kPhases;
  int32_t name = 0;   // index into RankSpans::names
  int64_t step = 0;   // the step that the span belongs to
  double begin = 0;   // seconds since 1970 by the rank's own clock
  double length = 0;  // seconds
  int64_t bytes = 0;  // payload of an exchange
};

struct RankSpans {
  int rank = 0;
  std::string host;
  int64_t process = 0;
  double clock_offset = 0;         // seconds: this rank's clock minus rank 0's
  double clock_uncertainty = 0;    // half of the shortest round trip it was estimated from
  std::vector<std::string> names;  // "forward", "gradient bucket 3"
  std::vector<Span> spans;         // ordered by begin
};

struct SpanFile {
  int64_t first_step = 0, last_step = 0;
  std::vector<RankSpans> ranks;
};

// Creates the folder if needed and writes the file atomically. Throws MachineError.
void write_span_file(const fs::path& path, const SpanFile& content);
// Throws DataError that says what is wrong and where.
SpanFile read_span_file(const fs::path& path);
// Returns the files RUN/trace/steps_*.json, ordered by first step.
std::vector<fs::path> span_files(const fs::path& run);

}  // namespace lockstep
