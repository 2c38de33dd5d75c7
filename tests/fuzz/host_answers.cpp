// What programs print on other hosts, through ssh: jobs, files that are held, checkpoints, measured
// steps, and what a job printed.
#include "fuzz.h"
#include "launch/ending/run_copies.h"
#include "launch/fetch/held_checkpoints.h"
#include "launch/jobs/job_sighting.h"
#include "launch/jobs/job_stream.h"
#include "launch/push/held_files.h"

namespace lockstep {
std::string libtorch_version();
}

// The targets are without torch, which knows it.
std::string lockstep::libtorch_version() { return "none"; }

FUZZ(bytes) {
  using namespace lockstep;
  const std::string text(bytes);
  try_one([&] { return host_sighting_of(text); });
  try_one([&] { return run_copies_of(text); });
  try_one([&] { return read_done(text); });
  try_one([&] { return read_best_steps(text); });
  try_one([&] { return read_answer(bytes); });
  std::vector<Piece> pieces;
  std::vector<std::string> paths;
  try_one([&] {
    read_question(bytes, pieces, paths);
    return pieces.size();
  });
  // The connection gives its bytes in parts of any size.
  for (const std::size_t part : {bytes.size(), std::size_t{7}}) {
    JobStreamReader reader([](bool, std::string_view piece) { use(piece); });
    try_one([&] {
      for (std::size_t at = 0; at < bytes.size(); at += part) reader.read(bytes.substr(at, part));
      return reader.whole();
    });
  }
}
