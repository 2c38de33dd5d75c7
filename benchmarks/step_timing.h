// What the programs that time a training step share: the task around it, time by operation, the
// start of the process.
#pragma once

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace lockstep {

// A task of which only the step is timed: data and evaluation are the trainer's business.
class StepOnlyTask : public Task {
 public:
  explicit StepOnlyTask(const Numerics& numerics) : numerics_(numerics) {}
  void describe(Fields&) override {}
  void open(const TaskContext&) override {}
  Parameters& parameters() override { return parameters_; }
  void compute_with(const Numerics& numerics) override { numerics_ = numerics; }
  int64_t steps_in_epoch(int64_t) override { return 0; }
  int64_t targets_in_step(int64_t, int64_t) override { return 0; }
  std::unique_ptr<Batch> make_batch(const BatchPosition&) override { return nullptr; }
  int64_t train_items() const override { return 0; }
  int64_t items_of(const std::string&) override { return 0; }
  double items_per_step() override { return 0; }
  const std::vector<MetricKind>& metrics() const override { return metrics_; }
  Evaluation evaluate(World&, const EvaluationRequest&) override { return {}; }
  std::string data_identity() const override { return "made up"; }

 protected:
  Numerics numerics_;
  Parameters parameters_;

 private:
  std::vector<MetricKind> metrics_;
};

// Time of each operation of the calling thread without those that it calls, by name and, for matrix
// products, shape.
class Profile {
 public:
  static void start() {
    at::addGlobalCallback(at::RecordFunctionCallback(&enter, &leave)
                              .needsInputs(true)
                              .scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE}));
  }
  // One line an operation, the longest first: ms and calls a step, GFLOP/s of products.
  static void print(int steps) {
    std::vector<std::pair<std::string, Entry>> sorted(entries_.begin(), entries_.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    double sum = 0;
    for (const auto& [name, e] : sorted) sum += e.seconds;
    fmt::print(stderr, "{:10.2f} ms a step in operations\n", sum * 1e3 / steps);
    for (const auto& [name, e] : sorted) {
      if (e.seconds * 1e3 / steps < 0.3) break;
      fmt::print(stderr, "{:10.2f} ms {:7.1f} calls {:7.1f} GFLOP/s  {}\n", e.seconds * 1e3 / steps,
                 static_cast<double>(e.calls) / steps, e.flops / e.seconds / 1e9, name);
    }
  }

 private:
  struct Entry {
    double seconds = 0, flops = 0;
    int64_t calls = 0;
  };
  struct Frame : at::ObserverContext {
    std::string name;
    double flops = 0, inner = 0;
    std::chrono::steady_clock::time_point start;
    Frame* outer = nullptr;
  };

  static std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& f) {
    auto frame = std::make_unique<Frame>();
    frame->name = f.name();
    std::vector<at::IntArrayRef> shapes;
    for (const c10::IValue& v : f.inputs()) {
      if (v.isTensor() && v.toTensor().defined() && v.toTensor().dim() == 2) {
        shapes.push_back(v.toTensor().sizes());
      }
    }
    if (frame->name.find("mm") != std::string::npos && shapes.size() >= 2) {
      const std::size_t first = shapes.size() >= 3 && frame->name == "aten::addmm_" ? 1 : 0;
      const auto &a = shapes[first], &b = shapes[first + 1];
      frame->flops = 2.0 * static_cast<double>(a[0] * a[1] * b[1]);
      frame->name += fmt::format(" {} x {}", shape(a), shape(b));
    }
    if (frame->name == "mkldnn::_linear_pointwise" && shapes.size() >= 2) {  // x W^T
      const auto &a = shapes[0], &b = shapes[1];
      frame->flops = 2.0 * static_cast<double>(a[0] * a[1] * b[0]);
      frame->name += fmt::format(" {} x {}^T", shape(a), shape(b));
    }
    // The kernels of nn/own_product.h: x W^T, d_y W, d_y^T x.
    const bool by_weight = frame->name == "lockstep::product_transposed";
    const bool of_weight = frame->name == "lockstep::weight_product";
    if ((by_weight || of_weight || frame->name == "lockstep::product") && shapes.size() >= 2) {
      const auto &a = shapes[0], &b = shapes[1];
      frame->flops = 2.0 * static_cast<double>(a[0] * a[1] * (by_weight ? b[0] : b[1]));
      frame->name += fmt::format(" {} x {}", shape(a), shape(b));
    }
    frame->outer = innermost_;
    innermost_ = frame.get();
    frame->start = std::chrono::steady_clock::now();
    return frame;
  }
  static void leave(const at::RecordFunction&, at::ObserverContext* context) {
    auto* frame = static_cast<Frame*>(context);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - frame->start;
    innermost_ = frame->outer;
    if (frame->outer != nullptr) frame->outer->inner += took.count();
    Entry& e = entries_[frame->name];
    e.seconds += took.count() - frame->inner;
    e.flops += frame->flops;
    ++e.calls;
  }
  static std::string shape(at::IntArrayRef sizes) {  // the number of tokens varies: rounded
    auto rounded = [](int64_t n) { return n > 1100 && n < 2000 ? 1500 : n; };
    return fmt::format("[{}, {}]", rounded(sizes[0]), rounded(sizes[1]));
  }

  static inline std::map<std::string, Entry> entries_;
  static inline thread_local Frame* innermost_ = nullptr;
};

inline double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

inline double process_start() {  // of this process, on the wall clock (/proc/self/stat, field 22)
  std::ifstream stat("/proc/self/stat"), uptime("/proc/uptime");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  double up = 0;
  uptime >> up;
  return wall_clock() - up + std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

inline double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace lockstep
