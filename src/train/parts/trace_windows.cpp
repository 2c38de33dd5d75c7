#include "train/parts/trace_windows.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "dist/account/progress.h"
#include "dist/liveness/heartbeat.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Returns {"count": 3, "names": ["forward", ...]}.
std::string describe(const RecordedSpans& recorded) {
  return Json{{"count", recorded.spans.size()}, {"names", recorded.names}}.dump();
}

// Sends the spans of `rank` (`mine` there) to rank 0. Both ranks call it.
std::vector<Span> bring(World& world, int rank, const std::vector<Span>& mine, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<Span>);
  const bool is_me = rank == world.rank();
  std::vector<Span> spans = is_me ? mine : std::vector<Span>(count);
  if (rank == 0 || count == 0) return spans;
  torch::Tensor bytes = torch::empty({static_cast<int64_t>(count * sizeof(Span))}, torch::kUInt8);
  if (is_me) std::memcpy(bytes.data_ptr(), spans.data(), bytes.nbytes());
  world.transfer(bytes, rank, 0);
  if (world.is_leader()) std::memcpy(spans.data(), bytes.data_ptr(), bytes.nbytes());
  return spans;
}

}  // namespace

void TraceSection::describe(Fields& f) {
  f("first", &first, AtLeast{1},
    "the first step of an attempt, counted from 1, whose spans every rank records for `lockstep "
    "trace`");
  f("steps", &steps, Between{0, TraceWindows::kMostSteps + 1}, "how many steps; 0: none");
}

TraceWindows::TraceWindows(World& world, fs::path folder, const TraceSection& section, int64_t step)
    : world_(world), folder_(std::move(folder)) {
  if (section.steps == 0) return;
  const int64_t first = step + section.first;
  world_.progress().account().recorder().plan(first, first + section.steps - 1);
}

void TraceWindows::look() {
  if (!fs::exists(request_file())) return;
  std::string text;
  try {
    text = read_file(request_file());
  } catch (const Error&) {  // the request was just withdrawn
    return;
  }
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return refuse(text, "no JSON");
  const bool has_id = json.is_object() && json.contains("id") && json["id"].is_string();
  const bool has_steps =
      json.is_object() && json.contains("steps") && json["steps"].is_number_integer();
  if (!has_id || !has_steps) {
    return refuse(text, R"(expected {"steps": NUMBER, "id": "TEXT"})");
  }
  Request request{json["id"], json["steps"]};
  if (request.steps < 1 || request.steps > kMostSteps) {
    return refuse(text, fmt::format("steps: expected 1 to {}, got {}", kMostSteps, request.steps));
  }
  std::scoped_lock lock(mutex_);
  unreadable_.clear();
  const bool is_known = request.id == served_ || (serving_ && serving_->id == request.id);
  if (!is_known) pending_ = std::move(request);
}

// Refuses only at the second look, since a file may be read while it is being written.
void TraceWindows::refuse(const std::string& text, const std::string& why) {
  {
    std::scoped_lock lock(mutex_);
    if (std::exchange(unreadable_, text) != text) return;
    unreadable_.clear();
  }
  log_warning("{}: {}; it is removed", request_file().string(), why);
  std::error_code ignored;
  fs::remove(request_file(), ignored);
}

int64_t TraceWindows::wish() {
  if (!world_.is_leader() || on_demand_) return 0;
  if (world_.progress().account().recorder().has_begun()) return 0;
  std::scoped_lock lock(mutex_);
  asked_ = pending_;
  return asked_ ? asked_->steps : 0;
}

void TraceWindows::after_step(int64_t step, int64_t wished) {
  SpanRecorder& recorder = world_.progress().account().recorder();
  if (recorder.is_over(step)) gather(step);
  if (wished == 0 || on_demand_ || recorder.has_begun()) return;
  on_demand_ = true;
  recorder.plan(step + 2, step + 1 + wished);
  if (!world_.is_leader()) return;
  log_info("recording steps {} to {} for lockstep trace", step + 2, step + 1 + wished);
  std::scoped_lock lock(mutex_);
  serving_ = std::exchange(asked_, std::nullopt);
  if (pending_ && serving_ && pending_->id == serving_->id) pending_.reset();
}

void TraceWindows::finish(int64_t step) {
  SpanRecorder& recorder = world_.progress().account().recorder();
  if (recorder.has_begun()) gather(step);
  if (recorder.is_planned()) recorder.cancel();
}

void TraceWindows::gather(int64_t step) {
  RankProgress& progress = world_.progress();
  progress.enter(Phase::kOther);  // ends the phase under way
  RecordedSpans mine = progress.account().recorder().take(step);
  const std::vector<std::string> described = world_.all_gather_strings(describe(mine));
  SpanFile file{.first_step = mine.first_step, .last_step = mine.last_step};
  const std::vector<RankSeen> seen = world_.heartbeat().ranks();
  for (int rank = 0; rank < world_.size(); ++rank) {
    if (!world_.is_leader() && rank != world_.rank()) continue;
    const auto at = static_cast<std::size_t>(rank);
    const Json json = Json::parse(described[at]);
    const RankSeen& who = seen[at];
    file.ranks.push_back({.rank = rank,
                          .host = who.identity.host,
                          .process = who.identity.process,
                          .clock_offset = who.status.clock_offset_seconds,
                          .clock_uncertainty = who.status.round_trip_seconds / 2,
                          .names = json.at("names"),
                          .spans = bring(world_, rank, mine.spans, json.at("count"))});
  }
  if (mine.dropped > 0) {
    log_warning("rank {}: {} spans of steps {} to {} are left out: more than {}", world_.rank(),
                mine.dropped, mine.first_step, mine.last_step, SpanRecorder::kMostSpans);
  }
  const bool was_asked = std::exchange(on_demand_, false);
  if (!world_.is_leader()) return;
  try {
    fs::create_directories(folder_);
    const std::string name = fmt::format("steps_{}-{}.json", file.first_step, file.last_step);
    write_span_file(folder_ / name, file);
  } catch (const std::exception& error) {  // the run must go on

    log_warning("spans of steps {} to {} are lost: {}", file.first_step, file.last_step,
                error.what());
  }
  if (!was_asked) return;
  std::string id;
  {
    std::scoped_lock lock(mutex_);
    if (serving_) id = serving_->id;
    served_ = id;
    serving_.reset();
    if (pending_ && pending_->id == id) pending_.reset();
  }
  remove_request(id);
}

// Removes the request unless another has replaced it.
void TraceWindows::remove_request(const std::string& id) {
  try {
    const Json json = Json::parse(read_file(request_file()), nullptr, false);
    if (json.is_object() && json.value("id", "") == id) fs::remove(request_file());
  } catch (const std::exception&) {  // the requester has withdrawn it
  }
}

}  // namespace lockstep
