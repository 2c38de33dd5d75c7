// How long ranks take to find each other through the store: lockstep's, which hears only who knows
// the secret, beside c10d's TCPStore, in turns.
//
//   store_start [RANKS] [ROUNDS]        64 and 10 by default
//
// Each rank is a thread, as many as a job has, over loopback. A start is what a World does:
// connect, say that it is here, wait for all, read what each has to say. Prints medians of the time
// until the last is ready.
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/statistics.h"
#include "dist/collectives/store.h"
#include "dist/rank/network.h"

namespace lockstep {
namespace {

using StorePointer = c10::intrusive_ptr<c10d::Store>;
constexpr std::chrono::seconds kLimit{60};

std::string key_of(int rank) { return fmt::format("says/{}", rank); }

void meet(c10d::Store& store, int rank, int ranks) {
  const std::string says = fmt::format("host {} 10.0.0.{} 40000", rank, rank);
  store.set(key_of(rank), std::vector<uint8_t>(says.begin(), says.end()));
  std::vector<std::string> keys;
  for (int r = 0; r < ranks; ++r) keys.push_back(key_of(r));
  store.wait(keys, kLimit);
  store.multiGet(keys);
}

// Seconds until all ranks know all. `open` gives a rank its store; that of rank 0 is there before.
template <class Open>
double start(int ranks, const Open& open) {
  const auto begin = std::chrono::steady_clock::now();
  const StorePointer first = open(0);
  std::vector<std::thread> others;
  for (int rank = 1; rank < ranks; ++rank) {
    others.emplace_back([&, rank] {
      try {
        meet(*open(rank), rank, ranks);
      } catch (const Error& error) {
        fmt::print(stderr, "error: {}\n", error.describe());
        std::exit(error.exit_code());
      }
    });
  }
  meet(*first, 0, ranks);
  for (std::thread& other : others) other.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double start_ours(int ranks) {
  LaunchEnvironment environment{.size = ranks, .master_address = "127.0.0.1"};
  environment.secret = random_token();
  const int listener = listen_on("127.0.0.1", 0);
  environment.master_port = port_of(listener);
  return start(ranks, [&](int rank) {
    LaunchEnvironment mine = environment;
    mine.rank = rank;
    if (rank == 0) mine.store_descriptor = listener;
    return open_store(mine, kLimit);
  });
}

double start_tcp_store(int ranks) {
  uint16_t port = 0;
  return start(ranks, [&](int rank) -> StorePointer {
    c10d::TCPStoreOptions options;
    options.timeout = kLimit;
    options.waitWorkers = false;
    options.isServer = rank == 0;
    options.port = port;
    auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
    if (rank == 0) port = store->getPort();
    return store;
  });
}

}  // namespace
}  // namespace lockstep

int main(int count, char** words) {
  using namespace lockstep;
  const int ranks = count > 1 ? std::atoi(words[1]) : 64,
            rounds = count > 2 ? std::atoi(words[2]) : 10;
  std::vector<double> ours, theirs;
  for (int round = 0; round < rounds; ++round) {
    if (round % 2 == 0) ours.push_back(start_ours(ranks));
    theirs.push_back(start_tcp_store(ranks));
    if (round % 2 == 1) ours.push_back(start_ours(ranks));
  }
  fmt::print("{} ranks: lockstep's store {:.1f} ms, TCPStore {:.1f} ms\n", ranks,
             1e3 * median(ours), 1e3 * median(theirs));
}
