#include "dist/world.h"

#include <c10/util/Logging.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "dist/gloo_backend.h"
#include "dist/nccl_backend.h"
#include "dist/network.h"
#include "dist/peer_error.h"
#include "dist/store.h"

namespace lockstep {
namespace {

using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using BackendPointer = c10::intrusive_ptr<c10d::Backend>;

// How long a rank that is done waits for the others to be done before it closes its connections.
constexpr std::chrono::seconds kFarewell{10};

void check_environment(const LaunchEnvironment& environment, const WorldOptions& options) {
  const LaunchEnvironment& e = environment;
  if (e.size < 1 || e.rank < 0 || e.rank >= e.size) {
    throw ConfigError("rank {} of {} ranks cannot be", e.rank, e.size);
  }
  if (options.device != "cpu" && options.device != "cuda") {
    throw ConfigError("device: expected cpu or cuda, got \"{}\"{}", options.device,
                      did_you_mean(options.device, {"cpu", "cuda"}));
  }
  if (options.device == "cuda" && e.size > 1 && !built_with_nccl()) {
    throw ConfigError(
        "device = cuda with {} ranks: this build has no NCCL; "
        "build against the CUDA wheel of torch",
        e.size);
  }
}

// c10d prints each failure with C++ frames before it throws; what it throws is all a person needs.
void quieten_c10d() {
  constexpr int kFatalOnly = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatalOnly;
}

// Where this rank listens for the others.
GlooEndpoint choose_endpoint(const LaunchEnvironment& environment) {
  GlooEndpoint out;
  if (const char* names = std::getenv("GLOO_SOCKET_IFNAME"); names != nullptr && *names != '\0') {
    out.interfaces = split(names, ',');
    log_debug("rank {} talks over {} (GLOO_SOCKET_IFNAME)", environment.rank, names);
    return out;
  }
  LocalAddress local = local_address_towards(environment.master_address);
  if (local.loopback && environment.local_size < environment.size) {
    MachineError error("the master address {} means this machine only, but ranks run elsewhere too",
                       environment.master_address);
    error.set_cause("a name that /etc/hosts maps to 127.0.1.1 cannot be reached from outside");
    error.set_advice("set MASTER_ADDR to rank 0's address in the network between the machines");
    throw error;
  }
  log_debug("rank {} talks over {} ({})", environment.rank, local.interface, local.address);
  out.address = local.address;
  return out;
}

}  // namespace

struct World::Connections {
  std::string who;  // "rank 2 of 4"
  c10::intrusive_ptr<c10d::Store> store;
  BackendPointer gloo, nccl;  // nccl: only for the device "cuda"
  std::atomic<bool> failed = false;
  int exceptions_at_start = std::uncaught_exceptions();
  mutable std::mutex mutex;  // of what follows
  Operation last;
  std::vector<WorkPointer> started;  // and perhaps not finished

  c10d::Backend& backend_for(const torch::Tensor& tensor) const {
    TORCH_CHECK(tensor.is_contiguous(), "collective operations need contiguous tensors");
    TORCH_CHECK(!tensor.is_cuda() || nccl, "a World for the CPU got a CUDA tensor");
    return tensor.is_cuda() ? *nccl : *gloo;
  }

  template <typename Work>
  auto guard(const std::string& what, const Work& work) {
    try {
      return work();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& exception) {
      failed = true;
      throw peer_error(who, what, exception);
    }
  }

  // Counts and names the operation, starts it; the result waits for it.
  template <typename Launch>
  Completion start(const std::string& name, const Launch& launch) {
    std::string what;
    {
      std::scoped_lock lock(mutex);
      last = {last.sequence + 1, name};
      what = fmt::format("{} (operation {} of this rank)", name, last.sequence);
    }
    WorkPointer work;
    try {
      work = launch();
    } catch (const c10::DistError& error) {  // anything else at this point is our bug
      failed = true;
      throw peer_error(who, what, error);
    }
    std::scoped_lock lock(mutex);
    std::erase_if(started, [](const WorkPointer& w) { return w->isCompleted(); });
    started.push_back(work);
    return [this, what, work] { guard(what, [&] { work->wait(); }); };
  }

  // [size, numel of mine], one row a rank. `mine`: [numel].
  torch::Tensor all_gather(const std::string& name, torch::Tensor mine, int size) {
    torch::Tensor all = torch::empty({size * mine.numel()}, mine.options());
    start(name, [&] { return backend_for(mine)._allgather_base(all, mine); })();
    return all.view({size, mine.numel()});
  }

  // A group that is destroyed waits for what is under way, for as long as a peer keeps it up, and
  // Gloo cannot be interrupted. The process is about to end in failure: it is left to that.
  void leave_unfinished() {
    std::scoped_lock lock(mutex);
    std::erase_if(started, [](const WorkPointer& w) { return w->isCompleted(); });
    if (started.empty()) return;
    for (WorkPointer& work : started) work.release();
    gloo.release();
    store.release();
    started.clear();
  }

  void reduce(const std::string& name, std::span<double> values, c10d::ReduceOp::RedOpType op) {
    auto count = static_cast<int64_t>(values.size());
    std::vector<torch::Tensor> tensors{torch::from_blob(values.data(), {count}, torch::kFloat64)};
    c10d::AllreduceOptions options;
    options.reduceOp = op;
    start(name, [&] { return gloo->allreduce(tensors, options); })();
  }
};

World::World(const LaunchEnvironment& environment, const WorldOptions& options)
    : environment_(environment) {
  check_environment(environment, options);
  if (environment.size > 1) connect(options);
}

void World::connect(const WorldOptions& options) {
  quieten_c10d();
  connections_ = std::make_unique<Connections>();
  Connections& c = *connections_;
  c.who = fmt::format("rank {} of {}", rank(), size());
  std::chrono::milliseconds connect_timeout = options.connect_timeout;
  GlooEndpoint endpoint = choose_endpoint(environment_);
  c.store = open_store(environment_, connect_timeout);
  wait_for_all_ranks(*c.store, environment_, connect_timeout);
  c.guard("connecting all ranks with each other", [&] {
    auto keys = c10::make_intrusive<c10d::PrefixStore>("gloo", c.store);
    c.gloo = make_gloo_backend(keys, rank(), size(), endpoint, connect_timeout);
    if (options.device == "cuda") {
      choose_cuda_device(environment_.local_rank);
      auto cuda_keys = c10::make_intrusive<c10d::PrefixStore>("nccl", c.store);
      c.nccl = make_nccl_backend(cuda_keys, rank(), size(), options.timeout);
    }
  });
  // Until here rank 0's store is read by others; a rank 0 that ends early must not take it away.
  c.start("first barrier", [&] { return c.gloo->barrier({}); })();
  c.gloo->setTimeout(options.timeout);
}

World::~World() {
  if (!connections_) return;
  Connections& c = *connections_;
  bool clean = !c.failed && std::uncaught_exceptions() <= c.exceptions_at_start && c.gloo;
  if (clean) {
    c10d::BarrierOptions options;
    options.timeout = kFarewell;
    try {
      c.start("last barrier", [&] { return c.gloo->barrier(options); })();
    } catch (const std::exception& exception) {
      // Nothing is lost: this rank was done. Another one was not, and reports for itself.
      log_debug("{} left first: {}", c.who, exception.what());
      clean = false;
    }
  }
  if (!clean && c.nccl) c.nccl->abort();
  if (!clean) c.leave_unfinished();
  c.nccl.reset();
  c.gloo.reset();
  c.store.reset();  // last: NCCL may still read it
}

void World::all_reduce_sum(const torch::Tensor& tensor) {
  start_all_reduce_sum(tensor, "all_reduce_sum")();
}

Completion World::start_all_reduce_sum(const torch::Tensor& tensor, const std::string& label) {
  if (!connections_) return [] {};
  Connections& c = *connections_;
  if (size() == 2 && tensor.is_cpu() && tensor.scalar_type() == torch::kBFloat16) {
    return start_bf16_exchange(tensor, label);
  }
  std::vector<torch::Tensor> tensors{tensor};
  return c.start(label, [&] { return c.backend_for(tensor).allreduce(tensors); });
}

// Gloo sums bf16 one number at a time. Between two ranks an exchange moves as many bytes as its
// ring does and leaves the sum to ATen's vectorised kernel, which rounds once, to the same bits.
Completion World::start_bf16_exchange(const torch::Tensor& tensor, const std::string& label) {
  Connections& c = *connections_;
  torch::Tensor both = torch::empty({2 * tensor.numel()}, tensor.options());
  torch::Tensor mine = tensor.view({-1});
  Completion gathered =
      c.start(label, [&] { return c.backend_for(tensor)._allgather_base(both, mine); });
  return [gathered, both, mine] {
    gathered();
    torch::NoGradGuard no_grad;
    torch::Tensor sum = mine;
    torch::add_out(sum, both.narrow(0, 0, mine.numel()),
                   both.narrow(0, mine.numel(), mine.numel()));
  };
}

void World::all_reduce_sum(std::span<double> values) {
  if (connections_) connections_->reduce("all_reduce_sum", values, c10d::ReduceOp::SUM);
}

void World::all_reduce_max(std::span<double> values) {
  if (connections_) connections_->reduce("all_reduce_max", values, c10d::ReduceOp::MAX);
}

void World::broadcast(const torch::Tensor& tensor, int root) {
  TORCH_CHECK(root >= 0 && root < size(), "no rank ", root);
  if (!connections_) return;
  Connections& c = *connections_;
  std::vector<torch::Tensor> tensors{tensor};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  c.start("broadcast", [&] { return c.backend_for(tensor).broadcast(tensors, options); })();
}

std::vector<std::string> World::all_gather_strings(const std::string& mine) {
  if (!connections_) return {mine};
  Connections& c = *connections_;
  auto length = static_cast<int64_t>(mine.size());
  torch::Tensor lengths =
      c.all_gather("all_gather_strings, lengths", torch::full({1}, length, torch::kInt64), size());
  // Gloo wants equal sizes: every rank sends as much as the longest.
  torch::Tensor padded = torch::zeros({lengths.max().item<int64_t>()}, torch::kUInt8);
  if (padded.numel() == 0) return std::vector<std::string>(size());
  std::memcpy(padded.data_ptr(), mine.data(), mine.size());
  torch::Tensor all = c.all_gather("all_gather_strings", padded, size());
  std::vector<std::string> out;
  for (int r = 0; r < size(); ++r) {
    out.emplace_back(reinterpret_cast<const char*>(all[r].data_ptr<uint8_t>()),
                     static_cast<std::size_t>(lengths[r].item<int64_t>()));
  }
  return out;
}

void World::barrier() {
  if (!connections_) return;
  Connections& c = *connections_;
  c.start("barrier", [&] { return c.gloo->barrier({}); })();
}

std::vector<int> World::all_equal(std::span<const uint64_t> values) {
  if (!connections_ || values.empty()) return {};
  torch::Tensor mine = torch::empty({static_cast<int64_t>(values.size())}, torch::kInt64);
  std::memcpy(mine.data_ptr(), values.data(), values.size_bytes());
  torch::Tensor all = connections_->all_gather("all_equal", mine, size());
  std::vector<int> differing;
  for (int r = 1; r < size(); ++r) {
    if (!torch::equal(all[r], all[0])) differing.push_back(r);
  }
  return differing;
}

void World::check_equal(const std::string& name, uint64_t fingerprint) {
  std::vector<int> differing = all_equal({&fingerprint, 1});
  if (differing.empty()) return;
  std::vector<std::string> names;
  for (int r : differing) names.push_back(std::to_string(r));
  bool one = differing.size() == 1;
  MachineError error("{}: rank{} {} differ{} from rank 0", name, one ? "" : "s", join(names, ", "),
                     one ? "s" : "");
  error.set_cause("ranks that start from equal weights and reduce gradients stay equal bit by bit");
  error.set_advice(
      "look for a bad machine or different versions; resume from a checkpoint before this step");
  throw error;
}

Operation World::last_operation() const {
  if (!connections_) return {};
  std::scoped_lock lock(connections_->mutex);
  return connections_->last;
}

}  // namespace lockstep
