#include "train/listeners/metrics_log.h"

#include <chrono>
#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/output_file.h"
#include "train/records/step_figures.h"

namespace lockstep {

MetricsLog::MetricsLog(const fs::path& path, std::string device)
    : path_(path), device_(std::move(device)), file_(std::fopen(path.c_str(), "a"), std::fclose) {
  if (!file_) throw MachineError("{}: cannot be opened: {}", path.string(), std::strerror(errno));
}

void MetricsLog::write(const std::string& line) {
  if (std::fputs((line + "\n").c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0) {
    throw write_failure(path_, errno);
  }
}

void MetricsLog::set_step_size(const nlohmann::ordered_json& figures) {
  step_size_ = figures.dump();
}

void MetricsLog::on_start(int64_t first_step, int64_t total_steps) {
  nlohmann::ordered_json line = {{"event", first_step == 1 ? "start" : "resume"},
                                 {"time", unix_seconds()},
                                 {"first_step", first_step},
                                 {"total_steps", total_steps},
                                 {"device", device_},
                                 {"phase_clock", device_ == "cpu" ? "host" : "device"}};
  if (!step_size_.empty()) line["step_size"] = nlohmann::ordered_json::parse(step_size_);
  write(line.dump());
}

void MetricsLog::on_step(const StepRecord& r) {
  nlohmann::ordered_json line = {
      {"event", "step"}, {"time", unix_seconds()}, {"step", r.step}, {"epoch", r.epoch}};
  for_each_figure(r, [&](const char* tag, auto value) { line[tag] = value; });
  if (r.local) line["comm/scope"] = "group";
  write(line.dump());
}

void MetricsLog::on_meeting(const MeetingRecord& r) {
  write(nlohmann::ordered_json{{"event", "meeting"},
                               {"time", unix_seconds()},
                               {"step", r.step},
                               {"steps", r.steps},
                               {"train/loss", r.loss},
                               {"comm/distance", r.distance},
                               {"time/wait_seconds", r.seconds},
                               {"comm/sent_bytes", r.sent_bytes}}
            .dump());
}

void MetricsLog::on_evaluation(const EvaluationRecord& r) {
  nlohmann::ordered_json line = {{"event", "evaluation"}, {"time", unix_seconds()},
                                 {"step", r.step},        {"epoch", r.epoch},
                                 {"seconds", r.seconds},  {"improved", r.improved}};
  for (const auto& [name, value] : r.result->metrics) line["eval/" + name] = value;
  write(line.dump());
}

void MetricsLog::on_checkpoint(const CheckpointRecord& r) {
  nlohmann::ordered_json line = {{"event", "checkpoint"},
                                 {"time", unix_seconds()},
                                 {"step", r.step},
                                 {"name", r.name},
                                 {"bytes", r.bytes},
                                 {"seconds", r.seconds},
                                 {"write_seconds", r.write_seconds}};
  write(line.dump());
}

void MetricsLog::on_intervention(const InterventionRecord& r) {
  write(nlohmann::ordered_json{{"event", "guard"},
                               {"time", unix_seconds()},
                               {"step", r.step},
                               {"kind", r.kind},
                               {"action", r.action},
                               {"why", r.why}}
            .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void MetricsLog::on_plan(const nlohmann::ordered_json& comparison) {
  nlohmann::ordered_json line = {{"event", "plan"}, {"time", unix_seconds()}};
  line.update(comparison);
  write(line.dump());
}

void MetricsLog::on_epoch(const nlohmann::ordered_json& figures) {
  nlohmann::ordered_json line = {{"event", "epoch"}, {"time", unix_seconds()}};
  line.update(figures);
  write(line.dump());
}

void MetricsLog::on_host(double time, int64_t step, const nlohmann::ordered_json& figures) {
  nlohmann::ordered_json line = {{"event", "host"}, {"time", time}, {"step", step}};
  line.update(figures);
  write(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void MetricsLog::on_slow_rank(const SlowRankRecord& r) {
  nlohmann::ordered_json line = {
      {"event", "slow_rank"},      {"time", r.time},           {"step", r.step},
      {"rank", r.straggler.rank},  {"host", r.straggler.host}, {"factor", r.straggler.factor},
      {"guess", r.straggler.guess}};
  write(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void MetricsLog::on_mirror(double time, const nlohmann::ordered_json& figures) {
  nlohmann::ordered_json line = {{"event", "mirror"}, {"time", time}};
  line.update(figures);
  write(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void MetricsLog::on_end(const std::string& reason) {
  write(nlohmann::ordered_json{{"event", "end"}, {"time", unix_seconds()}, {"reason", reason}}
            .dump());
}

}  // namespace lockstep
