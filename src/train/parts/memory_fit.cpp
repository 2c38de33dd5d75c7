#include "train/parts/memory_fit.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "nn/device_memory.h"
#include "train/parts/agreement.h"

namespace lockstep {

namespace {

// Runs one forward and backward pass as training does; returns the peak memory, or more than there
// is where the device has not enough.
int64_t probe(Task& task, GradientReducer& reducer, const DeviceMemory& memory,
              const Batch& batch) {
  memory.reset_peak();
  reducer.prepare(false);
  int64_t peak = 0;
  try {
    task.loss(batch, 1).loss.backward();
    peak = memory.peak();
  } catch (const std::exception& error) {
    if (!is_lack_of_memory(error)) throw;
    log_debug("a trial step is too large: {}", allocator_text(error));
    peak = memory.peak() + memory.available();
  }
  memory.give_back();
  return peak;
}

int64_t bytes_allowed(const World& world, const DeviceMemory& memory, double limit_bytes) {
  if (limit_bytes > 0) return static_cast<int64_t>(limit_bytes);
  constexpr double kShare = 0.75;  // leaves room for libraries' buffers and fragmentation
  double free = kShare * static_cast<double>(memory.available());
  return memory.in_use() + static_cast<int64_t>(free / world.environment().local_size);
}

// Returns the loads of all ranks. Collective.
std::vector<int64_t> share_loads(World& world, int64_t mine) {
  std::vector<double> loads(static_cast<std::size_t>(world.size()), 0);
  loads[static_cast<std::size_t>(world.rank())] = static_cast<double>(mine);
  world.all_reduce_sum(std::span<double>(loads));
  return {loads.begin(), loads.end()};
}

}  // namespace

int64_t largest_load_that_fits(const std::function<int64_t(int64_t load)>& peak_bytes,
                               const LoadRange& range, int64_t limit_bytes) {
  int64_t fits = 0, too_large = range.most + 1;
  int64_t next = std::min(range.least, range.most);
  double slope = 0;  // lower bound of bytes per unit of load
  int64_t fits_bytes = 0;
  while (next > fits) {
    int64_t bytes = peak_bytes(next);
    if (bytes <= limit_bytes) {
      if (fits > 0)
        slope = static_cast<double>(bytes - fits_bytes) / static_cast<double>(next - fits);
      fits = next;
      fits_bytes = bytes;
    } else {
      if (fits == 0) return 0;
      too_large = next;
    }
    if ((too_large - fits) * 16 <= fits || too_large - fits == 1) break;
    int64_t wanted = too_large > range.most ? range.most : (fits + too_large) / 2;
    // Grows at most fourfold at a time, and no further than the line through the last two points
    // allows.
    int64_t expected = fits * 4;
    if (slope > 0) {
      double room = static_cast<double>(limit_bytes - fits_bytes) / slope;
      expected = std::min(expected, fits + static_cast<int64_t>(room));
    } else {
      expected = std::min(expected, fits * 2);
    }
    next = std::min(wanted, std::max(expected, fits + std::max<int64_t>(1, fits / 16)));
  }
  return fits;
}

int64_t MemoryFit::micro_batches(const RankShares& shares, std::size_t rank) const {
  int64_t all = 0;
  for (const RankShare& share : shares) all += share.weight;
  const auto load = static_cast<__int128>(loads.at(rank)) * all;
  const auto own = static_cast<__int128>(step_load) * shares.at(rank).weight;
  return std::max<int64_t>(1, static_cast<int64_t>((own + load - 1) / load));
}

MemoryFit fit_to_memory(Task& task, World& world, GradientReducer& reducer,
                        const MemoryRoom& room) {
  if (task.largest_step_load() == 0) {
    throw ConfigError("training.fit_memory: not for this task, whose steps are not fitted");
  }
  const int64_t first = task.smallest_load();
  constexpr double kUneven = 1.1;  // the parts of a step differ, as do the largest steps of epochs
  const DeviceMemory memory(task.parameters().values().device());
  const int64_t allowed = bytes_allowed(world, memory, room.limit_bytes);
  MemoryFit out{.step_load =
                    static_cast<int64_t>(static_cast<double>(task.largest_step_load()) * kUneven)};
  const double most = std::ceil(static_cast<double>(out.step_load) * room.largest_part - 1e-6);
  LoadRange range{.least = first, .most = std::max(first, static_cast<int64_t>(most))};
  const torch::Tensor buffers = task.parameters().buffers().clone();  // the trials change them

  int64_t smallest_peak = 0;
  auto fitting = [&](ProbeItems items) {
    auto peak = [&](int64_t load) {
      int64_t bytes = probe(task, reducer, memory, *task.make_probe(load, items));
      log_debug("trial step of load {}: {}", load, short_bytes(static_cast<double>(bytes)));
      if (smallest_peak == 0) smallest_peak = bytes;
      return bytes;
    };
    return largest_load_that_fits(peak, range, allowed);
  };
  const int64_t load = std::min(fitting(ProbeItems::kLongest), fitting(ProbeItems::kShortest));
  task.parameters().gradients().zero_();
  torch::Tensor(task.parameters().buffers()).copy_(buffers);

  together(world, [&] {
    if (load > 0) return;
    MachineError error(
        "training.fit_memory: the smallest trial step needs {} at least, a rank may take {}",
        short_bytes(static_cast<double>(smallest_peak)), short_bytes(static_cast<double>(allowed)));
    error.set_advice("more training.fit_megabytes, fewer ranks a machine, a smaller model");
    throw error;
  });
  out.loads = share_loads(world, load);
  if (task.computes_together()) {
    const int64_t smallest = *std::min_element(out.loads.begin(), out.loads.end());
    out.loads.assign(out.loads.size(), smallest);
  }
  log_info("micro-batches fitted to {} a rank: up to {} {}",
           short_bytes(static_cast<double>(allowed)),
           with_commas(out.loads[static_cast<std::size_t>(world.rank())]),
           task.unit() == std::string_view("tok") ? "tokens of both sides" : "images");
  return out;
}

}  // namespace lockstep
