#include "train/listeners/mlperf_log.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/output_file.h"

namespace lockstep {

namespace {

int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

int64_t ms_before(int64_t ms, double seconds) { return ms - std::llround(seconds * 1000); }

fs::path first_free(const fs::path& folder) {
  for (int number = 0;; ++number) {
    fs::path path = folder / fmt::format("mlperf_{}.log", number);
    if (!fs::exists(path)) return path;
  }
}

// Returns "train/listeners/mlperf_log.cpp", without the folders of whoever built it.
std::string source_name(const char* file) {
  const std::string path = file;
  const std::size_t at = path.rfind("/src/");
  return at == std::string::npos ? path : path.substr(at + 5);
}

// Writes whole numbers, such as steps, without a decimal point.
nlohmann::ordered_json json_of(const HyperValue& value) {
  const double* number = std::get_if<double>(&value);
  if (number != nullptr && *number == std::rint(*number) && std::abs(*number) < 1e15) {
    return std::llrint(*number);
  }
  return std::visit([](const auto& v) { return nlohmann::ordered_json(v); }, value);
}

}  // namespace

MlperfLog::MlperfLog(const fs::path& folder, MlperfRun run)
    : run_(std::move(run)),
      path_(first_free(folder)),
      file_(std::fopen(path_.c_str(), "w"), std::fclose) {
  if (!file_) throw MachineError("{}: cannot be opened: {}", path_.string(), std::strerror(errno));
  write({.ms = run_.began_ms}, "cache_clear", run_.cache_cleared, Json::object());
  write({Kind::kStart, run_.began_ms}, "init_start", nullptr, Json::object());
  say("submission_benchmark", run_.benchmark);
  say("submission_org", run_.org);
  say("submission_division", run_.division);
  say("submission_status", run_.status);
  say("submission_platform", run_.platform);
  say("seed", run_.seed);
  say("global_batch_size", run_.batch_size);
  say("gradient_accumulation_steps", run_.accumulation);
  for (const auto& [key, value] : run_.settings) say(key, json_of(value));
  say("train_samples", run_.train_samples);
  say("eval_samples", run_.eval_samples);
}

void MlperfLog::write(Line line, const std::string& key, const Json& value, Json metadata,
                      std::source_location where) {
  if (stopped_) return;
  static constexpr const char* kNames[] = {"POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"};
  last_ms_ = std::max(last_ms_, line.ms);
  metadata["file"] = source_name(where.file_name());
  metadata["lineno"] = where.line();
  const Json content = {
      {"namespace", ""}, {"time_ms", last_ms_}, {"event_type", kNames[static_cast<int>(line.kind)]},
      {"key", key},      {"value", value},      {"metadata", std::move(metadata)}};
  const std::string text =
      ":::MLLOG " + content.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  if (std::fputs(text.c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0) {
    throw write_failure(path_, errno);
  }
}

void MlperfLog::say(const std::string& key, const Json& value, std::source_location where) {
  write({.ms = now_ms()}, key, value, Json::object(), where);
}

MlperfLog::Json MlperfLog::place(int64_t step, int64_t epoch) const {
  return {{"epoch_num", epoch + 1}, {"step_num", step}, {"samples_count", step * run_.batch_size}};
}

void MlperfLog::on_start(int64_t first_step, int64_t) {
  step_ = first_step - 1;
  write({Kind::kEnd, now_ms()}, "init_stop", nullptr, Json::object());
  write({Kind::kStart, now_ms()}, "run_start", nullptr, Json::object());
}

void MlperfLog::on_step(const StepRecord& r) {
  const int64_t began = ms_before(now_ms(), r.seconds);
  step_ = r.step;
  if (!in_epoch_ || r.epoch != epoch_) {
    write({Kind::kStart, began}, "epoch_start", nullptr, place(r.step - 1, r.epoch));
    in_epoch_ = true;
  }
  epoch_ = r.epoch;
  if (!block_) {
    block_ = r.epoch + 1;
    Json metadata = place(r.step - 1, r.epoch);
    metadata["first_epoch_num"] = *block_;
    metadata["epoch_count"] = run_.epochs_between;
    write({Kind::kStart, began}, "block_start", nullptr, std::move(metadata));
  }
  if (r.step_in_epoch + 1 == r.steps_in_epoch) {
    write({Kind::kEnd, now_ms()}, "epoch_stop", nullptr, place(r.step, r.epoch));
    in_epoch_ = false;
  }
}

void MlperfLog::on_evaluation(const EvaluationRecord& r) {
  const int64_t began = ms_before(now_ms(), r.seconds);
  const Json at = place(r.step, r.epoch);
  if (block_) {
    Json metadata = at;
    metadata["first_epoch_num"] = *block_;
    write({Kind::kEnd, began}, "block_stop", nullptr, std::move(metadata));
    block_.reset();
  }
  write({Kind::kStart, began}, "eval_start", nullptr, at);
  const auto found = r.result->metrics.find(run_.metric);
  const bool known = found != r.result->metrics.end();
  if (known) {
    Json metadata = at;
    metadata["metric"] = run_.metric;
    write({.ms = now_ms()}, "eval_accuracy", found->second / run_.whole, std::move(metadata));
  }
  write({Kind::kEnd, now_ms()}, "eval_stop", nullptr, at);
  if (known && reached(found->second)) stop(true, r.step, r.epoch);
}

bool MlperfLog::reached(double value) const {
  if (!run_.target) return false;
  return run_.higher_is_better ? value >= *run_.target : value <= *run_.target;
}

void MlperfLog::stop(bool success, int64_t step, int64_t epoch) {
  Json metadata = place(step, epoch);
  metadata["status"] = success ? "success" : "aborted";
  write({Kind::kEnd, now_ms()}, "run_stop", nullptr, std::move(metadata));
  stopped_ = true;
}

void MlperfLog::on_end(const std::string& reason) {
  stop(!run_.target && reason != "signal", step_, std::max<int64_t>(0, epoch_));
}

}  // namespace lockstep
