// What ranks gather from each other: through the store, as sums, or through c10d.
#include <algorithm>
#include <cstring>

#include "dist/collectives/collectives.h"
#include "kernels/kernel_table.h"

namespace lockstep {

std::vector<std::string> Collectives::gather_through_store(const std::string& mine,
                                                           std::chrono::milliseconds timeout) {
  const Issued what{"finding the ranks of each machine"};
  const int round = store_rounds_++;
  const auto until = std::chrono::steady_clock::now() + timeout;
  std::vector<std::string> keys, out;
  for (int r = 0; r < environment_.size; ++r) keys.push_back(fmt::format("gather{}/{}", round, r));
  return guard(what, [&] {
    store_->set(keys[environment_.rank], std::vector<uint8_t>(mine.begin(), mine.end()));
    for (;;) {
      try {
        store_->wait(keys, std::chrono::seconds(1));
        break;
      } catch (const std::exception&) {
        if (auto verdict = heartbeat_.verdict()) throw verdict_error(*verdict, who_, what.name);
        if (std::chrono::steady_clock::now() > until) throw;
      }
    }
    for (const std::vector<uint8_t>& theirs : store_->multiGet(keys)) {
      out.emplace_back(theirs.begin(), theirs.end());
    }
    return out;
  });
}

// Gathers as a sum in which each rank has its own row and zeros elsewhere: first on each machine,
// then between the machines. A ring of all ranks passes ranks x (ranks - 1) messages.
torch::Tensor Collectives::all_gather_as_sum(const std::string& name, const torch::Tensor& mine) {
  const auto row = static_cast<std::size_t>(mine.nbytes());
  const std::size_t bytes = row * static_cast<std::size_t>(environment_.size);
  // Kept to the end: after a failure another thread may still write here.
  std::vector<int64_t>& words = gathering_;
  words.assign((bytes + sizeof(int64_t) - 1) / sizeof(int64_t), 0);
  auto* flat = reinterpret_cast<std::byte*>(words.data());
  std::memcpy(flat + row * static_cast<std::size_t>(environment_.rank), mine.data_ptr(), row);
  const Summation summation{sizeof(int64_t), kernels().sum.int64};
  start_sum({name, mine}, words.data(), std::ssize(words), summation)();
  torch::Tensor all = torch::empty({environment_.size, mine.numel()}, mine.options());
  std::memcpy(all.data_ptr(), flat, bytes);
  return all;
}

torch::Tensor Collectives::all_gather(const std::string& name, torch::Tensor mine) {
  const int64_t size = environment_.size;
  if (shared() == nullptr && mine.is_cpu()) return all_gather_as_sum(name, mine);
  torch::Tensor all = torch::empty({size, mine.numel()}, mine.options());
  if (LocalGroup* group = shared(); group != nullptr) {
    const auto bytes = static_cast<int64_t>(mine.nbytes());
    std::vector<int64_t> cuts;
    for (int64_t r = 0; r <= size; ++r) cuts.push_back(r * bytes);
    all[environment_.rank].copy_(mine);
    auto* flat = static_cast<std::byte*>(all.data_ptr());
    run({name, mine}, [&] { group->all_gather_slices(flat, cuts); });
  } else {
    torch::Tensor flat = all.view({-1});
    start({name, mine}, [&] { return backend_for(mine)._allgather_base(flat, mine); })();
    // A ring passes every rank's part on to the next rank.
    const auto passed = static_cast<int64_t>(mine.nbytes()) * (size - 1);
    count_moved(passed, passed);
  }
  return all;
}

std::vector<std::string> Collectives::all_gather_strings(const std::string& mine) {
  auto length = static_cast<int64_t>(mine.size());
  torch::Tensor lengths =
      all_gather("all_gather_strings, lengths", torch::full({1}, length, torch::kInt64));
  // Gloo needs equal sizes, so every rank sends as much as the longest.
  torch::Tensor padded = torch::zeros({lengths.max().item<int64_t>()}, torch::kUInt8);
  if (padded.numel() == 0) return std::vector<std::string>(environment_.size);
  std::memcpy(padded.data_ptr(), mine.data(), mine.size());
  torch::Tensor all = all_gather("all_gather_strings", padded);
  std::vector<std::string> out;
  for (int r = 0; r < environment_.size; ++r) {
    out.emplace_back(reinterpret_cast<const char*>(all[r].data_ptr<uint8_t>()),
                     static_cast<std::size_t>(lengths[r].item<int64_t>()));
  }
  return out;
}

}  // namespace lockstep
