// Loads a server of `lockstep serve` on this machine, and measures how long its answers take.
//   serve_load PORT FILE --connections N --seconds S [--rate R] [--lines L]
// Each request has L lines of FILE in their order (1), again from its start at its end. Without
// --rate every connection sends its next request when it has the answer to the one before: full
// load. With it, requests are due at random times, R a second on average (a Poisson process), and
// wait for a free connection; a time is measured from when the request was due, so that a slow
// answer is not hidden by requests that were not sent meanwhile.
// Prints a line of JSON: requests, failures, seconds, requests_per_second, p50_ms, p99_ms, max_ms.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "support/http_client.h"

namespace {

using namespace lockstep;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct Load {
  int port = 0, connections = 1;
  std::size_t lines = 1;
  double seconds = 10, rate = 0;
  std::vector<std::string> bodies;
};

// The times at which requests are due, in seconds since the start; none without a rate.
std::vector<double> due_times(const Load& load) {
  std::vector<double> out;
  std::mt19937_64 random(1);
  std::exponential_distribution<double> gap(load.rate);
  if (load.rate <= 0) return out;
  for (double at = gap(random); at < load.seconds; at += gap(random)) out.push_back(at);
  return out;
}

struct Results {
  std::mutex mutex;
  std::vector<double> milliseconds;
  int failures = 0;
};

void send_all(const Load& load, const std::vector<double>& due, std::atomic<std::size_t>& next,
              Clock::time_point start, Results& results) {
  HttpClient client(load.port);
  std::vector<double> times;
  int failures = 0;
  while (true) {
    const std::size_t i = next++;
    Clock::time_point from = Clock::now();
    if (load.rate > 0) {
      if (i >= due.size()) break;
      from = start + std::chrono::duration_cast<Clock::duration>(Seconds(due[i]));
      std::this_thread::sleep_until(from);
    } else if (Seconds(from - start).count() >= load.seconds) {
      break;
    }
    const HttpAnswer answer = client.post(load.bodies[i % load.bodies.size()]);
    times.push_back(Seconds(Clock::now() - from).count() * 1e3);
    if (answer.status == 200) continue;
    ++failures;
    if (answer.status == 0) client = HttpClient(load.port);
  }
  std::lock_guard lock(results.mutex);
  results.milliseconds.insert(results.milliseconds.end(), times.begin(), times.end());
  results.failures += failures;
}

Load parse(int argc, char** argv) {
  Load load;
  load.port = std::atoi(argv[1]);
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const double value = std::atof(argv[i + 1]);
    if (option == "--connections") load.connections = static_cast<int>(value);
    if (option == "--seconds") load.seconds = value;
    if (option == "--rate") load.rate = value;
    if (option == "--lines") load.lines = static_cast<std::size_t>(value);
  }
  const std::vector<std::string> lines = read_lines(argv[2]);
  for (std::size_t at = 0; at < lines.size(); at += load.lines) {
    std::string& body = load.bodies.emplace_back();
    for (std::size_t i = at; i < std::min(at + load.lines, lines.size()); ++i) {
      body += lines[i] + "\n";
    }
  }
  return load;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "serve_load PORT FILE [--connections N --seconds S --rate R --lines L]\n");
    return 2;
  }
  const Load load = parse(argc, argv);
  const std::vector<double> due = due_times(load);
  std::atomic<std::size_t> next{0};
  Results results;
  const Clock::time_point start = Clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < load.connections; ++i) {
    threads.emplace_back([&] { send_all(load, due, next, start, results); });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = Seconds(Clock::now() - start).count();
  std::vector<double>& times = results.milliseconds;
  std::sort(times.begin(), times.end());
  if (times.empty()) return 1;
  const auto quantile = [&](double q) {
    return times[static_cast<std::size_t>(std::ceil(q * static_cast<double>(times.size()))) - 1];
  };
  fmt::print(
      "{{\"requests\": {}, \"failures\": {}, \"seconds\": {:.2f}, \"requests_per_second\": {:.1f}, "
      "\"p50_ms\": {:.1f}, \"p99_ms\": {:.1f}, \"max_ms\": {:.1f}}}\n",
      times.size(), results.failures, seconds, static_cast<double>(times.size()) / seconds,
      quantile(0.5), quantile(0.99), times.back());
  return results.failures == 0 ? 0 : 1;
}
