#include "train/config/hyper_fields.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "optim/optimizers/catalogue.h"
#include "tasks/catalogue.h"

namespace lockstep {

namespace {

// Collects every key with its value, in the order of the saved configuration.
class HyperFields : public Fields {
 public:
  std::vector<std::pair<std::string, HyperValue>> values;

 protected:
  void field(const std::string& key, FieldRef value, const Rule&, std::string_view) override {
    if (auto yes = std::get_if<bool*>(&value)) {
      values.emplace_back(key, **yes);
    } else if (auto whole = std::get_if<int64_t*>(&value)) {
      values.emplace_back(key, static_cast<double>(**whole));
    } else if (auto real = std::get_if<double*>(&value)) {
      values.emplace_back(key, **real);
    } else if (auto text = std::get_if<std::string*>(&value)) {
      values.emplace_back(key, **text);
    } else {
      values.emplace_back(key, toml_text(value));
    }
  }
};

// These keys are shown even at their defaults.
const std::set<std::string> kAlwaysShown = {
    "run.seed",        "run.precision",         "schedule.name",
    "training.steps",  "training.epochs",       "training.clip_norm",
    "comm.hook",       "comm.strategy",         "larc.mode",
    "loss_scale.name", "training.average_decay"};
// These keys are never shown: they say nothing about what is learned.
const std::set<std::string> kNeverShown = {"run.folder",
                                           "run.plan",
                                           "run.device",
                                           "training.minutes",
                                           "training.progress_every",
                                           "training.check_weights_every",
                                           "training.fit_memory",
                                           "training.fit_megabytes",
                                           "images.workers",
                                           "batch.evaluation_images",
                                           "batch.evaluation_tokens",
                                           "comm.timeout_seconds",
                                           "comm.lost_seconds",
                                           "comm.stall_seconds",
                                           "comm.shared_memory",
                                           "comm.streams",
                                           "comm.bucket_megabytes"};
const std::set<std::string> kHiddenSections = {"evaluation", "checkpoint", "logging", "mlperf",
                                               "decoding"};
// Experiments differ most in these: TensorBoard ticks only the first few keys by itself.
const std::set<std::string> kFirstSections = {"batch", "loss", "model", "optimizer", "schedule"};
// Sections that every run has; all others are the task's or the optimizer's.
const std::set<std::string> kCommonSections = {"run",        "schedule", "larc",
                                               "loss_scale", "training", "comm"};

std::map<std::string, HyperValue> defaults_of(const RunConfig& config) {
  RunConfig plain;
  plain.task = tasks().get(config.task_name)();
  plain.optimizer = optimizers().get(config.optimizer_name)();
  const auto values = configuration_values(plain);
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<std::pair<std::string, HyperValue>> configuration_values(RunConfig& config) {
  HyperFields fields;
  config.describe(fields);
  return std::move(fields.values);
}

HyperParameters hyper_parameters(RunConfig& config) {
  const std::map<std::string, HyperValue> defaults = defaults_of(config);
  const std::vector<std::string>& read = schedules().get(config.schedule.name).keys;
  HyperParameters out;
  for (const auto& [key, value] : configuration_values(config)) {
    const std::string section = key.substr(0, key.find('.'));
    if (kHiddenSections.count(section) > 0 || kNeverShown.count(key) > 0) continue;
    const auto usual = defaults.find(key);
    const bool differs = usual == defaults.end() || usual->second != value;
    bool shown = kCommonSections.count(section) == 0 || kAlwaysShown.count(key) > 0;
    if (section == "schedule") {
      shown = shown || std::count(read.begin(), read.end(), key.substr(section.size() + 1)) > 0;
    } else {
      shown = shown || differs;
    }
    if (!shown) continue;
    out.values.emplace_back(key, value);
    if (key == "optimizer.lr" || (differs && kFirstSections.count(section) > 0)) {
      out.first.insert(key);
    }
  }
  for (const std::string& name : config.evaluation.metrics) out.metrics.push_back("eval/" + name);
  for (const char* tag : {"eval/loss", "train/loss"}) {
    if (std::count(out.metrics.begin(), out.metrics.end(), tag) == 0) out.metrics.push_back(tag);
  }
  return out;
}

}  // namespace lockstep
