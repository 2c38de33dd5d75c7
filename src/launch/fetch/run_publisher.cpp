#include "launch/fetch/run_publisher.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/digest.h"
#include "base/error.h"
#include "base/output_file.h"
#include "formats/step_times.h"
#include "launch/fetch/run_join.h"

namespace lockstep {

namespace {

constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kEpochs = "epochs.csv";
constexpr const char* kLaunchEvents = "launch.jsonl";
constexpr const char* kLogs = "logs/";
struct Numbered {
  const char* before;
  const char* after;
  int first;
};
constexpr Numbered kNumbered[] = {{"times/attempt_", ".bin", 1}, {"mlperf_", ".log", 0}};

std::string_view text_of(const MappedFile& file, int64_t bytes) {
  return {reinterpret_cast<const char*>(file.bytes().data()), static_cast<std::size_t>(bytes)};
}

// Returns the N of "mlperf_N.log".
std::optional<int> number_between(std::string_view path, std::string_view before,
                                  std::string_view after) {
  if (!path.starts_with(before) || !path.ends_with(after)) return {};
  path.remove_prefix(before.size());
  path.remove_suffix(std::min(path.size(), after.size()));
  int number = -1;
  auto [end, failed] = std::from_chars(path.data(), path.data() + path.size(), number);
  if (failed != std::errc() || end != path.data() + path.size()) return {};
  return number;
}

bool is_numbered(const std::string& path) {
  return std::any_of(std::begin(kNumbered), std::end(kNumbered), [&](const Numbered& kind) {
    return number_between(path, kind.before, kind.after).has_value();
  });
}

// When the attempt that wrote a numbered file began; 0: it does not say.
double began_of(const fs::path& file) {
  if (file.extension() == ".bin") {
    std::optional<double> began;
    read_step_times(file, [&](const StepTimes& step) {
      if (!began) began = step.begin;
    });
    return began.value_or(0);
  }
  constexpr std::string_view kKey = "\"time_ms\": ";
  const std::string text = read_file(file);
  const std::size_t at = text.find(kKey);
  double milliseconds = 0;
  if (at != std::string::npos) {
    std::from_chars(text.data() + at + kKey.size(), text.data() + text.size(), milliseconds);
  }
  return milliseconds / 1000;
}

bool is_joined(const std::string& path) {
  return path == kMetrics || path == kEpochs || (path.starts_with(kLogs) && path.ends_with(".log"));
}

JoinedText join_as(const std::string& path, const std::vector<JoinSource>& sources) {
  if (path == kMetrics) return join_metrics(sources);
  if (path == kEpochs) return join_epochs(sources);
  if (path == kLaunchEvents) return join_launch_events(sources);
  return join_logs(sources);
}

void make_folder_of(const fs::path& file) {
  std::error_code failed;
  fs::create_directories(file.parent_path(), failed);
  if (failed) {
    throw MachineError("{}: cannot be created: {}", file.parent_path().string(), failed.message());
  }
}

}  // namespace

RunPublisher::RunPublisher(FetchState& state, fs::path to, std::vector<std::string> hosts,
                           fs::path launch_log)
    : state_(state), to_(std::move(to)), launch_log_(std::move(launch_log)) {
  std::map<std::string, double> began;
  for (const std::string& host : hosts) {
    const KeptFile* metrics = state_.kept(host, kMetrics);
    if (metrics == nullptr) continue;
    const MappedFile file(state_.mirror(host, kMetrics));
    began[host] = newest_attempt(text_of(file, metrics->facts.bytes));
  }
  std::stable_sort(hosts.begin(), hosts.end(),
                   [&](const std::string& a, const std::string& b) { return began[a] > began[b]; });
  hosts_ = std::move(hosts);
  for (const std::string& host : hosts_) attempts_.push_back(began[host]);
}

std::vector<std::string> RunPublisher::hosts_of_rank0() const {
  std::vector<std::string> out;
  for (std::size_t i = hosts_.size(); i-- > 0;) {
    if (attempts_[i] > 0) out.push_back(hosts_[i]);
  }
  return out;
}

std::vector<RunPublisher::Part> RunPublisher::parts_of(const std::string& path) const {
  std::vector<Part> out;
  for (const std::string& host : hosts_) {
    const KeptFile* file = state_.kept(host, path);
    if (file != nullptr) out.push_back({host, path, *file});
  }
  return out;
}

int RunPublisher::publish() {
  std::set<std::string> paths;
  for (const std::string& host : hosts_) {
    for (const auto& [path, file] : state_.files_of(host)) paths.insert(path);
  }
  int written = publish_launch_events();
  for (const Numbered& kind : kNumbered) {
    written += publish_numbered(kind.before, kind.after, kind.first);
  }
  for (const std::string& path : paths) {
    if (path.starts_with("checkpoints/") || path == kLaunchEvents || is_numbered(path)) continue;
    written += publish_one(path, parts_of(path)) ? 1 : 0;
  }
  return written;
}

bool RunPublisher::publish_one(const std::string& path, const std::vector<Part>& parts) {
  if (parts.empty()) return false;
  if (is_joined(path)) return write_joined(path, parts, {});
  if (!path.ends_with(".error")) return write_joined(path, {parts.front()}, {});
  // Why a rank failed last.
  return write_joined(path,
                      {*std::max_element(parts.begin(), parts.end(),
                                         [](const Part& a, const Part& b) {
                                           return a.file.facts.changed < b.file.facts.changed;
                                         })},
                      {});
}

int RunPublisher::publish_launch_events() {
  std::error_code none;
  const bool here = !launch_log_.empty() && fs::is_regular_file(launch_log_, none);
  // The launcher's own file, which may grow, is where it belongs.
  if (here && fs::equivalent(launch_log_, to_ / kLaunchEvents, none)) return 0;
  const std::vector<Part> parts = parts_of(kLaunchEvents);
  if (parts.empty() && !here) return 0;
  return write_joined(kLaunchEvents, parts, here ? launch_log_ : fs::path()) ? 1 : 0;
}

int RunPublisher::publish_numbered(const std::string& before, const std::string& after, int first) {
  std::vector<std::vector<AttemptFile>> sources;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    std::map<int, std::string> by_number;
    for (const auto& [path, file] : state_.files_of(hosts_[host])) {
      if (auto number = number_between(path, before, after)) by_number[*number] = path;
    }
    std::vector<AttemptFile>& files = sources.emplace_back();
    for (const auto& [number, path] : by_number) {
      if (state_.kept(hosts_[host], path) == nullptr) continue;
      files.push_back({host, path, began_of(state_.mirror(hosts_[host], path))});
    }
  }
  int written = 0, number = first;
  for (const AttemptFile& file : order_attempts(sources)) {
    const std::string& host = hosts_[file.source];
    const Part part{host, file.path, *state_.kept(host, file.path)};
    const std::string path = fmt::format("{}{}{}", before, number++, after);
    written += write_joined(path, {part}, {}) ? 1 : 0;
  }
  return written;
}

// Writes the parts, which are one file where nothing joins them, and a local file with them.
// Returns false when they are there already.
bool RunPublisher::write_joined(const std::string& path, const std::vector<Part>& parts,
                                const fs::path& local) {
  std::string source = local.empty() ? "" : sha256_of_file(local);
  for (const Part& part : parts) source += part.host + " " + part.path + " " + part.file.sha256;
  source = sha256_hex(std::as_bytes(std::span(source)));
  if (state_.is_given(path, source)) return false;
  state_.require_ours(path);
  std::vector<MappedFile> files;
  std::vector<JoinSource> sources;
  for (const Part& part : parts) {
    files.emplace_back(state_.mirror(part.host, part.path));
    sources.push_back({text_of(files.back(), part.file.facts.bytes), state_.zone_of(part.host)});
  }
  if (!local.empty()) {
    files.emplace_back(local);
    sources.push_back({text_of(files.back(), static_cast<int64_t>(files.back().bytes().size()))});
  }
  JoinedText text = {sources.front().text};
  if (is_joined(path) || path == kLaunchEvents) text = join_as(path, sources);
  Digest digest = Digest::sha256();
  for (std::string_view piece : text) digest.update(piece.data(), piece.size());
  state_.promise(path, digest.hex());
  make_folder_of(to_ / path);
  OutputFile file(to_ / path);
  for (std::string_view piece : text) file.write(piece);
  file.finish();
  state_.give(path, source);
  return true;
}

}  // namespace lockstep
