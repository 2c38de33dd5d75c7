// Runs a function on N ranks, each a forked process, over a store on loopback. The time is limited,
// and remaining processes are killed by their number. The parent must not have run torch's thread
// pools before.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "dist/collectives/world.h"
#include "dist/rank/launch_environment.h"
#include "dist/rank/network.h"

namespace lockstep {

struct RankResult {
  int exit_code = -1;      // -1: ended by a signal
  int signal = 0;          // the signal that ended it
  bool timed_out = false;  // it was still running at the time limit and was killed
  std::string text;        // the error that it ended with, as a person would read it
};

struct RanksOptions {
  std::chrono::seconds limit{30};  // for all ranks together
  WorldOptions world{std::chrono::seconds{10}, std::chrono::seconds{10}, "cpu"};
  std::vector<std::string> machines = {};  // by rank, to make the ranks seem to be on several
};

namespace detail {

struct Child {
  pid_t id = -1;
  int pipe = -1;  // where it writes the text of its error
};

// Runs in the child and never returns. Writes the text of an error to `pipe`.
[[noreturn]] inline void run_child(const std::function<void()>& body, int pipe) {
  std::string text;
  int code = 0;
  try {
    torch::set_num_threads(1);  // a forked process has none of its parent's pool
    body();
  } catch (const Error& error) {
    text = error.describe();
    code = error.exit_code();
  } catch (const std::exception& error) {
    text = error.what();
    code = kExitInternal;
  }
  if (code == 0 && testing::Test::HasFailure()) {
    text = "an expectation failed on this rank";
    code = 1;
  }
  std::fflush(nullptr);
  for (std::size_t at = 0; at < text.size();) {
    ssize_t n = write(pipe, text.data() + at, text.size() - at);
    if (n <= 0) break;
    at += static_cast<std::size_t>(n);
  }
  _exit(code);  // not exit(), which would finish the parent's test program a second time
}

// Reads until the child's end of the pipe closes or the time is over.
inline std::string read_until(int pipe, std::chrono::steady_clock::time_point end) {
  std::string text;
  char buffer[4096];
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd wanted{pipe, POLLIN, 0};
    if (left.count() <= 0 || poll(&wanted, 1, static_cast<int>(left.count())) <= 0) return text;
    ssize_t n = ::read(pipe, buffer, sizeof buffer);
    if (n <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
  }
}

inline RankResult collect(const Child& child, std::chrono::steady_clock::time_point end) {
  RankResult result;
  result.text = read_until(child.pipe, end);
  close(child.pipe);
  int status = 0;
  // The pipe closes when the process ends: then it can be reaped at once, or it is late.
  while (waitpid(child.id, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= end && !result.timed_out) {
      result.timed_out = true;
      kill(child.id, SIGKILL);
    }
    usleep(1000);
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace detail

// Each rank runs `body` with its environment, and may end in any way before it makes a World.
inline std::vector<RankResult> run_processes(
    int size, const std::function<void(const LaunchEnvironment&)>& body,
    std::chrono::seconds limit = std::chrono::seconds{30}) {
  int store = listen_on("127.0.0.1", 0);
  LaunchEnvironment environment;
  environment.size = environment.local_size = size;
  environment.master_address = "127.0.0.1";
  environment.master_port = port_of(store);
  environment.run_id = "test";
  std::vector<detail::Child> children(size);
  std::fflush(nullptr);
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw MachineError("no pipe");
    pid_t id = fork();
    if (id < 0) throw MachineError("no process");
    if (id == 0) {
      for (const detail::Child& other : children) {
        if (other.pipe >= 0) close(other.pipe);
      }
      close(ends[0]);
      environment.rank = environment.local_rank = rank;
      environment.store_descriptor = rank == 0 ? store : -1;
      if (rank != 0) close(store);
      detail::run_child([&] { body(environment); }, ends[1]);
    }
    close(ends[1]);
    children[rank] = {id, ends[0]};
  }
  close(store);
  auto end = std::chrono::steady_clock::now() + limit;
  std::vector<RankResult> results;
  for (const detail::Child& child : children) results.push_back(detail::collect(child, end));
  return results;
}

// Each rank runs `body` with a World of all ranks.
inline std::vector<RankResult> run_ranks(int size, const std::function<void(World&)>& body,
                                         const RanksOptions& options = {}) {
  auto with_world = [&](const LaunchEnvironment& environment) {
    WorldOptions world_options = options.world;
    if (!options.machines.empty()) world_options.machine = options.machines.at(environment.rank);
    World world(environment, world_options);
    body(world);
  };
  return run_processes(size, with_world, options.limit);
}

inline void expect_all_well(const std::vector<RankResult>& results) {
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    const RankResult& r = results[rank];
    EXPECT_FALSE(r.timed_out) << "rank " << rank << " did not end in time";
    EXPECT_EQ(r.exit_code, 0) << "rank " << rank << " (signal " << r.signal << "): " << r.text;
  }
}

}  // namespace lockstep
