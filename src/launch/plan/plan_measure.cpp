#include "launch/plan/plan_measure.h"

#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/statistics.h"
#include "base/text.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// Seconds. TCP halves its window for each retransmission time (200 ms or more) without traffic; a
// longer pause than this would make it smaller still, but the measurement too long.
constexpr double kLongestPause = 0.6;
constexpr double kSteady = 0.15;  // steps are steady when the median deviation is at most this

// Quotes a path for a host's shell; "~/x" is below the host's own home.
std::string quoted_folder(const std::string& path) {
  constexpr std::string_view kHome = "~/";
  if (!path.starts_with(kHome)) return shell_quote(path);
  return "\"$HOME\"/" + shell_quote(path.substr(kHome.size()));
}

std::string command_of(const ComputeRequest& request) {
  std::vector<std::string> words;
  if (request.ranks > 1) words = {"launch", "-n", std::to_string(request.ranks), "--"};
  words.push_back("train");
  words.insert(words.end(), request.words.begin(), request.words.end());
  const int steps = request.steps + request.warming_steps;
  words.insert(words.end(), {"--bench-steps", std::to_string(steps), "--bench-start",
                             std::to_string(request.warming_steps), "--bench-ranks",
                             std::to_string(request.of_ranks), "--bench-json", "-"});
  const char* threads = std::getenv("OMP_NUM_THREADS");  // ssh would not pass it on
  const std::string setting =
      threads != nullptr ? fmt::format("export OMP_NUM_THREADS={}\n", shell_quote(threads)) : "";
  return fmt::format("cd {} || exit 3\n{}{}", quoted_folder(request.folder), setting,
                     lockstep_text(request.remote, words));
}

// Throws the command's own error.
[[noreturn]] void fail(const RemoteResult& result) {
  const int code = WIFEXITED(result.status) ? WEXITSTATUS(result.status) : 0;
  const bool ours =
      code == kExitConfig || code == kExitData || code == kExitMachine || code == kExitDiverged;
  const std::size_t at = result.error.find("error: ");
  if (!ours || at == std::string::npos) {
    throw remote_error(*result.host, result.status, result.error);
  }
  Error error(code, std::string(trim(result.error.substr(at + 7))));
  error.add_context(fmt::format("taking a few steps on {} to measure them", result.host->name));
  throw error;
}

RunMeasurement measure_once(const ComputeRequest& request) {
  const RemoteJob job{.host = &request.host, .shell_text = command_of(request)};
  const RemoteResult result = run_jobs({job}, request.remote, {}).at(0);
  if (result.status != 0) fail(result);
  for (const std::string& line : split(result.output, '\n')) {
    if (line.rfind("{\"unit\"", 0) != 0) continue;
    return reading_answers(request.host.name,
                           [&] { return measurement_from_json(Json::parse(line)); });
  }
  MachineError error("{}: the steps were taken, but not reported", request.host.name);
  error.set_cause(result.error);
  error.set_advice("is its lockstep of another version? lockstep doctor tells");
  throw error;
}

// Returns the median deviation from the median, as a share of the median.
double unsteadiness(const RunMeasurement& m) {
  std::vector<double> seconds, distances;
  for (const MeasuredStep& s : m.steps) seconds.push_back(s.seconds);
  const double middle = median(seconds);
  for (double s : seconds) distances.push_back(std::abs(s - middle));
  return middle > 0 ? median(std::move(distances)) / middle : 0;
}

double typical(const RunMeasurement& m) {
  std::vector<double> seconds;
  for (const MeasuredStep& s : m.steps) seconds.push_back(s.seconds);
  return median(std::move(seconds));
}

}  // namespace

RunMeasurement measure_compute(const ComputeRequest& request) {
  RunMeasurement first = measure_once(request);
  if (unsteadiness(first) <= kSteady) return first;
  RunMeasurement second = measure_once(request);
  return typical(second) < typical(first) ? second : first;
}

namespace {

// The step's own buckets, as many as are under way at a time; larger ones where those are too small
// for their transfer to show.
std::vector<int64_t> buckets_to_measure(const ComputeModel& compute, int streams) {
  constexpr double kLeast = 1e6;
  std::vector<double> bytes = compute.bucket_bytes;
  if (bytes.empty()) bytes = {std::max(kLeast, compute.gradient_bytes)};
  bytes.resize(std::min<std::size_t>(bytes.size(), static_cast<std::size_t>(streams)));
  const double larger = std::max(1.0, kLeast / std::accumulate(bytes.begin(), bytes.end(), 0.0));
  std::vector<int64_t> out;
  for (const double b : bytes) out.push_back(static_cast<int64_t>(b * larger));
  return out;
}

}  // namespace

MeasuredLink measure_network(ProbedHosts& hosts, const ComputeModel& compute, int streams) {
  constexpr int64_t kSmall = 64'000;
  const std::vector<int64_t> large = buckets_to_measure(compute, streams);
  const auto pause_ms =
      static_cast<int64_t>(1e3 * std::min(kLongestPause, compute.idle_link_seconds()));
  // The large ones come first: they open the windows.
  const Json wanted = Json::array(
      {Json{{"sums", large}, {"repeats", 30}, {"pause_ms", pause_ms}, {"limit_ms", 6000}},
       Json{{"sums", {kSmall}}, {"repeats", 14}, {"pause_ms", pause_ms}, {"limit_ms", 4000}}});
  auto timing = [](int64_t bytes, const Json& j) {
    return ExchangeTiming{static_cast<double>(bytes), j.at("seconds"), j.at("cpu_seconds")};
  };
  const int64_t large_bytes = std::accumulate(large.begin(), large.end(), int64_t{0});
  auto once = [&] {
    const Json times = hosts.exchange(wanted, std::chrono::seconds(30));
    MeasuredLink out{.small = timing(kSmall, times.at(1)),
                     .large = timing(large_bytes, times.at(0))};
    out.link = fit_link(out.small, out.large, static_cast<int>(hosts.answering().size()));
    return out;
  };
  try {
    return reading_answers("the hosts", once);
  } catch (const MachineError&) {
    return reading_answers("the hosts", once);
  }
}

}  // namespace lockstep
