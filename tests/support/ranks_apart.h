// Runs `lockstep train` as ranks that each work in a folder of their own, as on machines that share
// nothing: a relative images.data is another folder for each.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/descriptor.h"
#include "dist/rank/network.h"
#include "support/program.h"

namespace lockstep {

// `folders`: of each rank, several may have the same. `last_under`: a program, with its arguments,
// that runs the last rank's. Returns the largest exit code and the output of all ranks.
inline ProgramResult train_apart(const std::vector<fs::path>& folders, const std::string& words,
                                 int seconds = 120, const std::string& last_under = "",
                                 const std::string& program = LOCKSTEP_PROGRAM) {
  TemporaryFolder scripts;
  int port = 0;
  {
    const Descriptor probe(listen_on("127.0.0.1", 0));
    port = port_of(probe.get());
  }
  std::string script = "pids=\n";
  for (std::size_t rank = 0; rank < folders.size(); ++rank) {
    script += fmt::format(
        "(cd '{}' && RANK={} WORLD_SIZE={} LOCAL_RANK={} LOCAL_WORLD_SIZE={} MASTER_ADDR=127.0.0.1 "
        "MASTER_PORT={} GOMP_SPINCOUNT=10000 OMP_NUM_THREADS=1 exec {} '{}' train {}) &\n"
        "pids=\"$pids $!\"\n",
        folders[rank].string(), rank, folders.size(), rank, folders.size(), port,
        rank + 1 == folders.size() ? last_under : "", program, words);
  }
  script += "code=0\nfor pid in $pids; do wait $pid || code=$?; done\nexit $code\n";
  write_file(scripts.path() / "ranks", script);
  return run_program("/bin/sh", (scripts.path() / "ranks").string(), "", seconds);
}

// Copies prepared shards to `to`, without the named files.
inline void copy_without(const fs::path& shards, const fs::path& to,
                         const std::vector<std::string>& missing) {
  fs::create_directories(to.parent_path());
  fs::copy(shards, to, fs::copy_options::recursive);
  for (const std::string& name : missing) ASSERT_TRUE(fs::remove(to / name)) << name;
}

// Returns the values of `name` in the run's steps.
inline std::vector<double> step_values(const fs::path& run, const std::string& name) {
  std::vector<double> out;
  for (const auto& step : metrics_of(run, "step")) out.push_back(step.at(name).get<double>());
  return out;
}

}  // namespace lockstep
