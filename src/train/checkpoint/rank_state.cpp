#include "train/checkpoint/rank_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "formats/tensor_file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/training_state.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

const char* const kNumbers = "numbers";  // key in a file's metadata
const char* const kOptimizerSteps = "optimizer_steps";
const char* const kOptimizer = "optimizer.";  // begins the names of its arrays

fs::path file_of(const fs::path& checkpoint, int rank) {
  return checkpoint / fmt::format("rank_{}.safetensors", rank);
}

bool is_whole_numbers(const torch::Tensor& t) { return t.scalar_type() == torch::kInt64; }

// Returns {"source": 1, "numbers": {...}, "arrays": [[name, length, whole numbers?], ...]}.
std::string describe(const RankState& state, int source) {
  Json arrays = Json::array();
  for (const HookArray& a : state.arrays) {
    arrays.push_back({a.name, a.data.numel(), is_whole_numbers(a.data)});
  }
  Json out = {{"source", source}, {kNumbers, state.numbers}, {"arrays", arrays}};
  return out.dump();
}

// Allocates arrays of the described names and lengths, on the CPU.
RankState make_described(const std::string& text) {
  const Json json = Json::parse(text);
  RankState out;
  out.numbers = json.at(kNumbers);
  for (const Json& a : json.at("arrays")) {
    auto type = a.at(2).get<bool>() ? torch::kInt64 : torch::kFloat32;
    out.arrays.push_back({a.at(0), torch::empty({a.at(1).get<int64_t>()}, type)});
  }
  return out;
}

// Returns false where the file does not exist or holds other arrays.
bool read_state(const fs::path& path, RankState& state) {
  if (!fs::exists(path)) return false;
  TensorFile file(path);
  for (HookArray& a : state.arrays) {
    const TensorEntry* entry = file.find(a.name);
    if (entry == nullptr || entry->data.size() != a.data.nbytes()) return false;
    std::memcpy(a.data.mutable_data_ptr(), entry->data.data(), entry->data.size());
  }
  for (const auto& [key, value] : file.metadata()) {
    if (key == kNumbers) state.numbers = Json::parse(value);
  }
  return true;
}

// Returns the bytes of the arrays that describe() described.
int64_t described_bytes(const std::string& text) {
  int64_t out = 0;
  for (const Json& a : Json::parse(text).at("arrays")) {
    const int64_t each = a.at(2).get<bool>() ? sizeof(int64_t) : sizeof(float);
    out += each * a.at(1).get<int64_t>();
  }
  return out;
}

std::string bytes_of(const RankState& state) {
  std::string out;
  for (const HookArray& a : state.arrays) {
    const torch::Tensor host = a.data.to(torch::kCPU).contiguous();
    out.append(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
  }
  return out;
}

void take_bytes(const std::string& bytes, RankState& state) {
  std::size_t at = 0;
  for (HookArray& a : state.arrays) {
    std::memcpy(a.data.mutable_data_ptr(), bytes.data() + at, a.data.nbytes());
    at += a.data.nbytes();
  }
}

// Brings the states of all ranks to those that keep checkpoints; on other ranks, only their own
// state is filled in.
std::vector<RankState> gather(World& world, const RankState& mine, bool keeps,
                              int64_t bytes_to_everyone) {
  const std::vector<std::string> told =
      world.all_gather_strings((keeps ? "+" : "-") + describe(mine, world.rank()));
  std::vector<RankState> out(told.size());
  int64_t bytes = 0;
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    const std::string description = told[rank].substr(1);
    bytes += described_bytes(description);
    if (keeps) out[rank] = make_described(description);
  }
  out[static_cast<std::size_t>(world.rank())] = mine;
  if (bytes <= bytes_to_everyone) {
    const std::vector<std::string> all = world.all_gather_strings(bytes_of(mine));
    for (std::size_t rank = 0; keeps && rank < all.size(); ++rank) {
      if (static_cast<int>(rank) != world.rank()) take_bytes(all[rank], out[rank]);
    }
    return out;
  }
  for (int from = 0; from < world.size(); ++from) {
    for (int to = 0; to < world.size(); ++to) {
      const bool wants = to != from && told[static_cast<std::size_t>(to)].starts_with('+');
      if (!wants || (from != world.rank() && to != world.rank())) continue;
      for (HookArray& a : out[static_cast<std::size_t>(from)].arrays) {
        world.transfer(a.data, from, to);
      }
    }
  }
  return out;
}

// Overwrites `mine` with what was saved for the rank `source`. Returns false, with `mine`
// unchanged, where the checkpoint has no arrays of these names and lengths for it. A rank that
// wants nothing passes an empty state. Collective.
bool restore(World& world, const CheckpointPlace& place, int source, RankState& mine) {
  const std::vector<std::string> wanted = world.all_gather_strings(describe(mine, source));
  const bool holds = world.rank() == place.holder;
  std::vector<RankState> read;
  Json found = Json::array();
  for (std::size_t rank = 0; holds && rank < wanted.size(); ++rank) {
    RankState& state = read.emplace_back(make_described(wanted[rank]));
    const fs::path file = file_of(place.path, Json::parse(wanted[rank]).at("source"));
    const bool is_there = !state.arrays.empty() && read_state(file, state);
    found.push_back({is_there, state.numbers});
  }
  const auto holder = static_cast<std::size_t>(place.holder);
  found = Json::parse(world.all_gather_strings(found.dump()).at(holder));
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const bool is_me = rank == world.rank();
    if (!found.at(at).at(0).get<bool>() || (!holds && !is_me)) continue;
    const RankState& here = holds ? read[at] : mine;
    for (std::size_t i = 0; i < here.arrays.size(); ++i) {
      world.transfer(here.arrays[i].data, place.holder, rank);
      if (holds && is_me) mine.arrays[i].data.copy_(here.arrays[i].data);
    }
  }
  const Json& own = found.at(static_cast<std::size_t>(world.rank()));
  if (own.at(0).get<bool>()) mine.numbers = own.at(1);
  return own.at(0).get<bool>();
}

// Returns the optimizer's arrays and the guard's state of a group that takes local steps by itself.
RankState group_state(TrainingState& training) {
  RankState out;
  const OptimizerState optimizer = training.update.gather_state();
  for (const StateArray& a : optimizer.arrays) {
    out.arrays.push_back({kOptimizer + a.name, a.data.view({-1})});
  }
  out.numbers = training.guard.state();
  out.numbers[kOptimizerSteps] = static_cast<double>(optimizer.steps_done);
  return out;
}

// Restores the rest of a group's state, after its arrays, which are the optimizer's own, were
// restored.
void take_group_state(const RankState& state, TrainingState& training) {
  OptimizerState optimizer = training.update.gather_state();
  optimizer.steps_done = static_cast<int64_t>(state.numbers.at(kOptimizerSteps));
  training.update.set_state(optimizer);
  training.guard.set_state(state.numbers);
}

RankState hook_state(TrainingState& training) {
  RankState out;
  for (const HookArray& a : training.hook.state()) {
    out.arrays.push_back({"gradients." + a.name, a.data});
  }
  if (training.local.hook() == nullptr) return out;
  for (const HookArray& a : training.local.hook()->state()) {
    out.arrays.push_back({"meetings." + a.name, a.data});
  }
  return out;
}

// Returns whether this rank's group has an optimizer of its own.
bool stands_alone(TrainingState& training) {
  return training.local.is_local(training.position.step) && training.local.group_leader() != 0;
}

}  // namespace

std::vector<RankState> gather_rank_states(TrainingState& training, bool keeps,
                                          int64_t bytes_to_everyone) {
  RankState mine = hook_state(training);
  const std::vector<HookArray> statistics = training.statistics.own();  // on all ranks or on none
  if (mine.empty() && training.local.hook() == nullptr && statistics.empty()) return {};
  mine.arrays.insert(mine.arrays.end(), statistics.begin(), statistics.end());
  if (training.local.is_local(training.position.step) &&
      training.local.group_leader() == training.world.rank()) {
    RankState group = group_state(training);
    mine.arrays.insert(mine.arrays.end(), group.arrays.begin(), group.arrays.end());
    mine.numbers = group.numbers;
  }
  return gather(training.world, mine, keeps, bytes_to_everyone);
}

void take_first_group(CheckpointContent& content) {
  if (content.ranks.empty() || !content.ranks.front().numbers.contains(kOptimizerSteps)) return;
  RankState& first = content.ranks.front();
  for (StateArray& array : content.optimizer.arrays) {
    const auto found = std::ranges::find(first.arrays, kOptimizer + array.name, &HookArray::name);
    array.data = found->data.view_as(array.data);
    first.arrays.erase(found);
  }
  content.optimizer.steps_done = static_cast<int64_t>(first.numbers.at(kOptimizerSteps));
  first.numbers.erase(kOptimizerSteps);
  content.guard = std::exchange(first.numbers, {});
}

void write_rank_states(const fs::path& checkpoint, const std::vector<RankState>& states) {
  for (std::size_t rank = 0; rank < states.size(); ++rank) {
    const RankState& state = states[rank];
    if (state.empty()) continue;
    std::vector<TensorEntry> entries;
    std::vector<torch::Tensor> host;  // keeps copies from a GPU alive
    for (const HookArray& a : state.arrays) {
      host.push_back(a.data.to(torch::kCPU).contiguous());
      auto bytes = static_cast<const std::byte*>(host.back().const_data_ptr());
      entries.push_back({a.name,
                         is_whole_numbers(a.data) ? DType::kI64 : DType::kF32,
                         {a.data.numel()},
                         {bytes, host.back().nbytes()}});
    }
    write_tensor_file(file_of(checkpoint, static_cast<int>(rank)), entries,
                      {{kNumbers, Json(state.numbers).dump()}});
  }
}

void restore_rank_states(TrainingState& training, const CheckpointPlace& place) {
  // Without statistics by rank, all ranks continue with the means that were read with the weights.
  RankState statistics{training.statistics.empty_own(), {}};
  if (!statistics.empty() && restore(training.world, place, training.world.rank(), statistics)) {
    training.statistics.take(statistics.arrays);
  }
  RankState hooks = hook_state(training);
  if (hooks.empty() && training.local.hook() == nullptr) return;
  if (restore(training.world, place, training.world.rank(), hooks)) {
    training.hook.restored();
    if (training.local.hook() != nullptr) training.local.hook()->restored();
  } else if (!hooks.empty()) {
    log_info("{} holds no errors that comm.hook fed back on these ranks: they begin anew",
             place.path.string());
  }
  const bool alone = stands_alone(training);
  RankState group = alone ? group_state(training) : RankState{};
  if (restore(training.world, place, training.local.group_leader(), group)) {
    take_group_state(group, training);
  } else if (alone) {
    log_info("{} holds no optimizer of this group of ranks: it goes on with that of the first one",
             place.path.string());
  }
}

}  // namespace lockstep
