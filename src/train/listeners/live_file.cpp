#include "train/listeners/live_file.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/host_usage.h"
#include "base/log.h"
#include "dist/liveness/heartbeat.h"
#include "dist/rank/launcher_report.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

double rounded(double value, double digits = 1e4) { return std::round(value * digits) / digits; }

// Returns what the driver says of one GPU.
Json gpu_json(const GpuFigures& gpu) {
  Json out = {{"name", gpu.name}};
  auto put = [&](const char* name, double value, double digits) {
    if (value >= 0) out[name] = rounded(value, digits);
  };
  put("use", gpu.use, 100);
  if (gpu.memory_bytes > 0) {
    out["memory_used_bytes"] = gpu.memory_used_bytes;
    out["memory_bytes"] = gpu.memory_bytes;
  }
  put("watts", gpu.watts, 10);
  put("temperature", gpu.temperature, 1);
  put("sm_megahertz", gpu.sm_megahertz, 1);
  return out;
}

Json usage_json(const HostFigures& u) {
  return {{"cores", rounded(u.process_cores, 100)},
          {"machine_cores", u.cores},
          {"machine_share", rounded(u.machine_share)},
          {"memory_bytes", u.resident_bytes},
          {"memory_available_bytes", u.available_bytes},
          {"interface", u.interface},
          {"in_bytes_per_second", std::round(u.in_bytes_per_second)},
          {"out_bytes_per_second", std::round(u.out_bytes_per_second)},
          {"link_bytes_per_second", std::round(u.link_bytes_per_second)},
          {"retransmits_per_second", rounded(u.retransmits_per_second, 10)}};
}

const char* presence_text(const RankSeen& r, double silence) {
  constexpr double kSilent = 2;  // four missed heartbeats
  switch (r.presence) {
    case Presence::kAbsent:
      return "absent";
    case Presence::kDone:
      return "done";
    case Presence::kClosed:
      return "lost";
    case Presence::kHere:
      break;
  }
  return silence > kSilent ? "silent" : "ok";
}

Json rank_json(const RankSeen& r, const StepShares& shares, RankSeen::Time now) {
  const ProgressView& p = r.status.progress;
  double silence = std::chrono::duration<double>(now - r.seen).count();
  Json out = {{"rank", r.identity.rank},
              {"host", r.identity.host},
              {"address", r.identity.address},
              {"process", r.identity.process},
              {"state", presence_text(r, silence)},
              {"seen_seconds", rounded(silence, 100)},
              {"step", p.step},
              {"epoch", p.epoch},
              {"phase", name_of(p.phase)},
              {"phase_seconds", rounded(p.phase_seconds, 100)},
              {"operation", p.started},
              {"waiting_in", p.waiting},
              {"waiting_seconds", rounded(p.waiting_seconds, 100)},
              {"step_seconds", rounded(shares.step_seconds, 1e6)},
              {"compute_seconds", rounded(shares.compute_seconds, 1e6)},
              {"wait_seconds", rounded(shares.wait_seconds, 1e6)},
              {"data_seconds", rounded(shares.data_seconds, 1e6)},
              {"targets_per_second", rounded(shares.targets_per_second, 10)},
              {"clock_offset_seconds", rounded(r.status.clock_offset_seconds, 1e6)},
              {"round_trip_seconds", rounded(r.status.round_trip_seconds, 1e6)}};
  if (!r.operations.empty()) out["operation_name"] = r.operations.back().name;
  out["usage"] = usage_json(r.status.usage);
  for (int i = 0; i < r.machine.gpus; ++i) out["gpus"].push_back(gpu_json(r.machine.gpu[i]));
  return out;
}

// What the launcher's notices name: the metric that improved, else the first that is no loss.
void tell_score(const EvaluationRecord& record) {
  const std::map<std::string, double>& metrics = record.result->metrics;
  auto chosen = metrics.begin();
  if (chosen != metrics.end() && chosen->first == "loss" && std::next(chosen) != metrics.end()) {
    ++chosen;
  }
  if (!record.improved.empty()) {
    const auto improved = metrics.find(record.improved.front());
    if (improved != metrics.end()) chosen = improved;
  }
  if (chosen == metrics.end()) return;
  tell_launcher(fmt::format("scored {}={}", chosen->first, chosen->second));
}

// What the launcher says of costs (launch/job/job_ending.h), so that `watch` can show them wherever
// it looks; null without a price.
Json cost_json() {
  const char* text = std::getenv("LOCKSTEP_COST");
  double before = 0, per_hour = 0, budget = 0, began = 0;
  if (text == nullptr ||
      std::sscanf(text, "%lf %lf %lf %lf", &before, &per_hour, &budget, &began) != 4) {
    return nullptr;
  }
  return {{"before", before}, {"per_hour", per_hour}, {"budget", budget}, {"began", began}};
}

}  // namespace

LiveFile::LiveFile(World& world, const RunFolder& folder, MetricsLog& log, LiveOptions options)
    : world_(world),
      folder_(folder),
      log_(log),
      options_(std::move(options)),
      started_(unix_seconds()) {
  if (!world_.heartbeat().is_running()) world_.heartbeat().start("");  // there is only one rank
  thread_ = std::thread([this] { run(); });
}

LiveFile::~LiveFile() {
  {
    std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  ended_.notify_all();
  thread_.join();
  look();
  std::optional<RankVerdict> verdict = world_.heartbeat().verdict();
  if (!end_reason_.empty()) {
    write(text("ended", end_reason_));
  } else if (verdict) {
    write(text("failed", verdict->headline));
  } else {
    write(text("failed", "rank 0 failed; its log says why"));
  }
}

void LiveFile::on_start(int64_t first_step, int64_t total_steps) {
  std::scoped_lock lock(mutex_);
  newest_.step = first_step - 1;
  newest_.total_steps = total_steps;
}

void LiveFile::on_step(const StepRecord& record) {
  log_slow_ranks();
  std::scoped_lock lock(mutex_);
  newest_ = record;
}

void LiveFile::on_evaluation(const EvaluationRecord& record) {
  log_slow_ranks();
  std::scoped_lock lock(mutex_);
  evaluation_ = fmt::format("step {}: {}", record.step, record.result->summary);
  tell_score(record);
}

void LiveFile::on_checkpoint(const CheckpointRecord& record) {
  log_slow_ranks();
  std::scoped_lock lock(mutex_);
  checkpoint_ = record.name;
  tell_launcher(fmt::format("checkpoint_seconds {:.3f}", record.seconds + record.write_seconds));
}

void LiveFile::log_slow_ranks() {
  std::vector<SlowRankRecord> records;
  {
    std::scoped_lock lock(mutex_);
    records.swap(slow_ranks_);
  }
  for (const SlowRankRecord& record : records) log_.on_slow_rank(record);
}

void LiveFile::on_end(const std::string& reason) {
  std::scoped_lock lock(mutex_);
  end_reason_ = reason;
}

void LiveFile::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    look();
    write(text("running", ""));
    lock.lock();
    ended_.wait_for(lock, std::chrono::seconds{1}, [this] { return stopping_; });
  }
}

// Collects what is new, and logs the warnings that it causes.
void LiveFile::look() {
  auto now = std::chrono::steady_clock::now();
  stragglers_.add(world_.heartbeat().ranks(), now);
  disk_free_ = free_disk_bytes(folder_.path().string());
  if (options_.look) options_.look();
  for (const std::string& warning : world_.heartbeat().take_warnings()) {
    log_warning("{}", warning);
  }
  if (auto slow = stragglers_.lasting(now)) {
    log_warning("rank {} on {} is {:.2f} times as slow as the others, who wait for it: {}",
                slow->rank, slow->host, slow->factor, slow->guess);
    std::scoped_lock lock(mutex_);
    slow_ranks_.push_back({unix_seconds(), newest_.step, *slow});
  }
}

std::string LiveFile::text(const std::string& state, const std::string& reason) {
  const auto now = std::chrono::steady_clock::now();
  std::vector<RankSeen> ranks = world_.heartbeat().ranks();
  const std::vector<StepShares> shares = stragglers_.shares();
  const StepShares& mine = shares.front();
  std::scoped_lock lock(mutex_);
  tell_launcher(fmt::format("at {}/{}", newest_.step, newest_.total_steps));
  auto left = static_cast<double>(std::max<int64_t>(0, newest_.total_steps - newest_.step));
  double eta = left * mine.step_seconds;
  if (options_.minutes > 0) {
    eta = std::min(eta, std::max(0.0, options_.minutes * 60 - (unix_seconds() - started_)));
  }
  double rate =
      mine.step_seconds > 0 ? mine.targets_per_second * mine.busy_seconds() / mine.step_seconds : 0;
  Json out = {{"version", 1},
              {"time", unix_seconds()},
              {"started", started_},
              {"state", state},
              {"reason", reason},
              {"attempt", world_.environment().attempt},
              {"size", world_.size()},
              {"threads", options_.threads},
              {"step", newest_.step},
              {"total_steps", newest_.total_steps},
              {"epoch", newest_.epoch},
              {"loss", newest_.loss},
              {"learning_rate", newest_.lr},
              {"targets_per_second", rounded(rate, 10)},
              {"unit", options_.unit},
              {"eta_seconds", rounded(eta, 10)},
              {"evaluation", evaluation_},
              {"checkpoint", checkpoint_},
              {"disk_free_bytes", disk_free_},
              {"slowest", nullptr},
              {"ranks", Json::array()}};
  if (Json cost = cost_json(); !cost.is_null()) out["cost"] = std::move(cost);
  if (auto slow = stragglers_.slowest()) {
    out["slowest"] = {
        {"rank", slow->rank}, {"factor", rounded(slow->factor, 100)}, {"guess", slow->guess}};
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (state == "ended") {  // all ranks took the last step, after their last heartbeats
      ranks[r].status.progress.step = newest_.step;
      ranks[r].status.progress.phase = Phase::kEnding;
    }
    out["ranks"].push_back(rank_json(ranks[r], shares[r], now));
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A reader sees all of the file or none; it is not synced, being obsolete a second later.
void LiveFile::write(const std::string& content) {
  const fs::path target = folder_.live();
  fs::path beside = target;
  beside += ".part";
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  std::error_code failed;
  if (file) fs::rename(beside, target, failed);
  if ((!file || failed) && !std::exchange(complained_, true)) {
    log_warning("{}: cannot be written; `lockstep watch` shows what is there", target.string());
  }
}

}  // namespace lockstep
