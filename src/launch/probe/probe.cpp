#include "launch/probe/probe.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iostream>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "launch/processes/descriptor.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// Reads lines of standard input in a thread of its own, which notices the end of input while an
// answer is being made: then the process ends, after a moment for the answer.
class Requests {
 public:
  Requests() {
    std::thread([this] { read_all(); }).detach();
  }

  // Returns false at the end of input.
  bool next(std::string& line) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || !lines_.empty(); });
    if (lines_.empty()) return false;
    line = std::move(lines_.front());
    lines_.pop_front();
    return true;
  }

 private:
  void read_all() {
    for (std::string line; std::getline(std::cin, line);) {
      std::scoped_lock lock(mutex_);
      lines_.push_back(line);
      changed_.notify_one();
    }
    {
      std::scoped_lock lock(mutex_);
      ended_ = true;
      changed_.notify_one();
    }
    std::this_thread::sleep_for(std::chrono::seconds(10));
    _exit(kExitMachine);  // the answer hangs, and the caller is gone
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  bool ended_ = false;
};

Json answer_to(const std::string& line, const std::map<std::string, ProbeAnswer>& answers) {
  try {
    Json request = Json::parse(line);
    const std::string name = request.at("ask");
    auto found = answers.find(name);
    if (found == answers.end()) throw ConfigError("no such request: {}", name);
    Json answer = found->second(request);
    answer["probe"] = name;
    return answer;
  } catch (const Error& error) {
    return {{"probe", "error"}, {"message", error.describe()}, {"exit", error.exit_code()}};
  } catch (const std::exception& error) {
    return {{"probe", "error"}, {"message", error.what()}, {"exit", int{kExitInternal}}};
  }
}

}  // namespace

void serve_probe(const std::map<std::string, ProbeAnswer>& answers) {
  // Leaked on purpose: its thread may still read when this returns and the process ends.
  auto* requests = new Requests();
  for (std::string line; requests->next(line);) {
    if (line.empty()) continue;
    if (!write_all(STDOUT_FILENO, answer_to(line, answers).dump() + "\n")) break;
  }
}

}  // namespace lockstep
