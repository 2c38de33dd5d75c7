#include "dist/collectives/world.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "dist/collectives/collectives.h"
#include "dist/collectives/cuda.h"
#include "dist/rank/pmi.h"

namespace lockstep {
namespace {

void check_environment(const LaunchEnvironment& environment, const WorldOptions& options) {
  const LaunchEnvironment& e = environment;
  if (e.size < 1 || e.rank < 0 || e.rank >= e.size) {
    throw ConfigError("rank {} of {} ranks cannot be", e.rank, e.size);
  }
  if (options.device != "cpu" && options.device != "cuda") {
    throw ConfigError("device: expected cpu or cuda, got \"{}\"{}", options.device,
                      did_you_mean(options.device, {"cpu", "cuda"}));
  }
  if (options.device == "cuda" && usable_gpus() == 0) {
    throw MachineError("device = cuda: {}", why_no_gpu());
  }
}

Summation summation_of(at::ScalarType type) {
  const SumKernels& sum = kernels().sum;
  switch (type) {
    case torch::kFloat32:
      return {4, sum.fp32};
    case torch::kFloat64:
      return {8, sum.fp64};
    case torch::kFloat16:
      return {2, sum.fp16};
    case torch::kBFloat16:
      return {2, sum.bf16};
    case torch::kInt64:
      return {8, sum.int64};
    default:
      TORCH_CHECK(false, "no sums over ranks of ", type);
  }
}

void largest_of_doubles(const void* const* inputs, int64_t count, void* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double largest = static_cast<const double*>(inputs[0])[i];
    for (int64_t input = 1; input < count; ++input) {
      largest = std::max(largest, static_cast<const double*>(inputs[input])[i]);
    }
    static_cast<double*>(out)[i] = largest;
  }
}

std::span<std::byte> bytes_of(const torch::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous(), "collective operations need contiguous tensors");
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// Returns how often a rank passes a broadcast on in Gloo's binomial tree.
// `rank` counts from the root.
int64_t passes_of_broadcast(int rank, int size) {
  int64_t passes = 0;
  for (int bit = 1; bit < size && (rank & bit) == 0; bit <<= 1) {
    if (rank + bit < size) ++passes;
  }
  return passes;
}

}  // namespace

World::World(const LaunchEnvironment& environment, const WorldOptions& options)
    : environment_(environment) {
  check_environment(environment, options);
  DetectorOptions judge{.lost_seconds = options.lost_seconds,
                        .stall_seconds = options.stall_seconds};
  heartbeat_ = std::make_unique<Heartbeat>(environment.rank, environment.size, judge);
  if (environment.size > 1) {
    learn_master(environment_);
    collectives_ = std::make_unique<Collectives>(environment_, *heartbeat_);
    collectives_->connect(options);
    machine_ranks_ = collectives_->machine_ranks();
  }
  if (!machine_ranks_.empty()) return;
  for (int r = 0; r < environment.size; ++r) machine_ranks_.push_back({r});
}

World::~World() = default;

RankProgress& World::progress() { return heartbeat_->progress(); }

const std::vector<int>& World::neighbours() const {
  auto holds_me = [this](const std::vector<int>& ranks) {
    return std::find(ranks.begin(), ranks.end(), rank()) != ranks.end();
  };
  return *std::find_if(machine_ranks_.begin(), machine_ranks_.end(), holds_me);
}

void World::all_reduce_sum(const torch::Tensor& tensor) {
  LocalGroup* group = collectives_ && tensor.is_cpu() ? collectives_->shared() : nullptr;
  if (group == nullptr) {
    start_all_reduce_sum(tensor, "all_reduce_sum")();
    return;
  }
  Summation summation = summation_of(tensor.scalar_type());
  std::byte* data = bytes_of(tensor).data();
  collectives_->run({"all_reduce_sum", tensor},
                    [&] { group->all_reduce(data, tensor.numel(), summation); });
}

Completion World::start_all_reduce_sum(const torch::Tensor& tensor, const std::string& label,
                                       Reach reach) {
  if (!collectives_ || reach == Reach::kAlone) return [] {};
  Collectives& c = *collectives_;
  if (c.needs_copy(tensor)) {
    torch::Tensor host = tensor.cpu();
    Completion summed = start_all_reduce_sum(host, label, reach);
    return [host, tensor, summed = std::move(summed)] {
      summed();
      tensor.copy_(host);
    };
  }
  if (reach == Reach::kMachine && c.shared() == nullptr) {
    LocalGroup* group = c.neighbours();
    if (group == nullptr) return [] {};
    TORCH_CHECK(tensor.is_cpu(), "sums on one of several machines are for CPU tensors");
    Summation summation = summation_of(tensor.scalar_type());
    std::byte* data = bytes_of(tensor).data();
    return c.queue(OperationLabel(label, tensor).for_some(),
                   [=] { group->all_reduce(data, tensor.numel(), summation); });
  }
  if (tensor.is_cpu()) {
    Summation summation = summation_of(tensor.scalar_type());
    std::byte* data = bytes_of(tensor).data();
    LocalGroup* group = c.shared();
    if (group == nullptr) return c.start_sum({label, tensor}, data, tensor.numel(), summation);
    return c.queue({label, tensor}, [=] { group->all_reduce(data, tensor.numel(), summation); });
  }
  std::vector<torch::Tensor> tensors{tensor};
  // NCCL does not say what it sends: the bytes of a ring are assumed (Patarasuk and Yuan 2009).
  const auto ring = static_cast<int64_t>(2 * (size() - 1) * tensor.nbytes()) / size();
  c.count_moved(ring, ring);
  return c.start({label, tensor}, [&] { return c.backend_for(tensor).allreduce(tensors); });
}

void World::all_reduce_sum(std::span<double> values) { reduce("all_reduce_sum", values, false); }

void World::all_reduce_max(std::span<double> values) { reduce("all_reduce_max", values, true); }

void World::reduce(const std::string& name, std::span<double> values, bool largest) {
  if (!collectives_) return;
  Collectives& c = *collectives_;
  auto count = static_cast<int64_t>(values.size());
  Summation summation{sizeof(double), largest ? largest_of_doubles : kernels().sum.fp64};
  if (LocalGroup* group = c.shared(); group != nullptr) {
    c.run({name, count}, [&] { group->all_reduce(values.data(), count, summation); });
  } else {
    c.start_sum({name, count}, values.data(), count, summation)();
  }
}

Completion World::start_all_reduce_sum(std::span<double> values, const std::string& label,
                                       Reach reach) {
  if (!collectives_ || reach == Reach::kAlone) return [] {};
  Collectives& c = *collectives_;
  const bool all = reach == Reach::kAll || c.shared() != nullptr;
  LocalGroup* group = all ? c.shared() : c.neighbours();
  if (!all && group == nullptr) return [] {};
  auto count = static_cast<int64_t>(values.size());
  Summation summation{sizeof(double), kernels().sum.fp64};
  if (group == nullptr) return c.start_sum({label, count}, values.data(), count, summation);
  // On one machine the sum runs on the caller's thread when the figures are wanted, which saves a
  // switch to another thread.
  return [=, &c] {
    OperationLabel what{label, count};
    what.of_some = !all;
    c.run(what, [&] { group->all_reduce(values.data(), count, summation); });
  };
}

void World::broadcast(const torch::Tensor& tensor, int root) {
  TORCH_CHECK(root >= 0 && root < size(), "no rank ", root);
  if (!collectives_) return;
  Collectives& c = *collectives_;
  if (c.needs_copy(tensor)) {
    const torch::Tensor host = tensor.cpu();
    broadcast(host, root);
    tensor.copy_(host);
    return;
  }
  if (LocalGroup* group = c.shared(); group != nullptr && tensor.is_cpu()) {
    std::span<std::byte> bytes = bytes_of(tensor);
    c.run({"broadcast", tensor}, [&] { group->broadcast(bytes, root); });
    return;
  }
  start_broadcast(tensor, root, "broadcast")();
}

// Broadcasts through c10d.
Completion World::start_broadcast(const torch::Tensor& tensor, int root, const std::string& label) {
  Collectives& c = *collectives_;
  std::vector<torch::Tensor> tensors{tensor};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  const auto bytes = static_cast<int64_t>(tensor.nbytes());
  c.count_moved(bytes * passes_of_broadcast((rank() + size() - root) % size(), size()),
                rank() == root ? 0 : bytes);
  return c.start({label, tensor},
                 [&] { return c.backend_for(tensor).broadcast(tensors, options); });
}

void World::transfer(const torch::Tensor& tensor, int from, int to) {
  if (!collectives_ || from == to || (rank() != from && rank() != to)) return;
  Collectives& c = *collectives_;
  torch::Tensor host = tensor.cpu();
  std::vector<torch::Tensor> bytes{host.view({-1}).view(torch::kUInt8)};
  OperationLabel label(fmt::format("transfer from rank {} to rank {}", from, to));
  label.of_some = true;
  label.interruptible = false;
  c.start(label, [&] {
    return rank() == from ? c.gloo().send(bytes, to, 0) : c.gloo().recv(bytes, from, 0);
  })();
  const auto moved = static_cast<int64_t>(host.nbytes());
  rank() == from ? c.count_moved(moved, 0) : c.count_moved(0, moved);
  if (rank() == to && !host.is_same(tensor)) tensor.copy_(host);
}

void World::all_gather_slices(const torch::Tensor& flat, std::span<const int64_t> cuts) {
  TORCH_CHECK(flat.dim() == 1 && cuts.size() == static_cast<std::size_t>(size()) + 1 &&
                  cuts.front() == 0 && cuts.back() == flat.numel() &&
                  std::is_sorted(cuts.begin(), cuts.end()),
              "cuts must ascend from 0 to the length of a flat tensor, one slice a rank");
  if (!collectives_) return;
  Collectives& c = *collectives_;
  if (c.needs_copy(flat)) {
    const torch::Tensor host = flat.cpu();
    all_gather_slices(host, cuts);
    flat.copy_(host);
    return;
  }
  if (LocalGroup* group = c.shared(); group != nullptr && flat.is_cpu()) {
    std::byte* data = bytes_of(flat).data();
    std::vector<int64_t> bytes;
    for (int64_t cut : cuts) bytes.push_back(cut * flat.element_size());
    c.run({"all_gather_slices", flat}, [&] { group->all_gather_slices(data, bytes); });
    return;
  }
  // All ranks' slices are sent at once, as bytes, which every backend supports.
  std::vector<Completion> running;
  for (int r = 0; r < size(); ++r) {
    if (cuts[r] == cuts[r + 1]) continue;
    torch::Tensor slice = flat.narrow(0, cuts[r], cuts[r + 1] - cuts[r]).view(torch::kUInt8);
    running.push_back(start_broadcast(slice, r, fmt::format("all_gather_slices, of rank {}", r)));
  }
  for (const Completion& completion : running) completion();
}

std::vector<std::string> World::all_gather_strings(const std::string& mine) {
  if (!collectives_) return {mine};
  return collectives_->all_gather_strings(mine);
}

void World::barrier() {
  if (!collectives_) return;
  Collectives& c = *collectives_;
  if (LocalGroup* group = c.shared(); group != nullptr) {
    c.run("barrier", [&] { group->barrier(); });
    return;
  }
  double nothing = 0;
  c.start_sum("barrier", &nothing, 1, {sizeof(double), kernels().sum.fp64})();
}

std::vector<int> World::all_equal(std::span<const uint64_t> values) {
  if (!collectives_ || values.empty()) return {};
  torch::Tensor mine = torch::empty({static_cast<int64_t>(values.size())}, torch::kInt64);
  std::memcpy(mine.data_ptr(), values.data(), values.size_bytes());
  torch::Tensor all = collectives_->all_gather("all_equal", mine);
  std::vector<int> differing;
  for (int r = 1; r < size(); ++r) {
    if (!torch::equal(all[r], all[0])) differing.push_back(r);
  }
  return differing;
}

void World::say_farewell() {
  if (collectives_) collectives_->say_farewell();
}

void World::check_gpu_operations() {
  if (collectives_) collectives_->check_gpu_operations();
}

Operation World::last_operation() const {
  return collectives_ ? collectives_->last_operation() : Operation{};
}

}  // namespace lockstep
