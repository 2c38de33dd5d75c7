#include "launch/ending/notifier.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "launch/processes/child_process.h"

namespace lockstep {

namespace {

using std::chrono::seconds;

constexpr std::size_t kMostWaiting = 16;  // notices of one target; the oldest are dropped
constexpr seconds kForCommand{30};
constexpr seconds kForUrl{40};  // three tries of 10 s, and the pauses between them
constexpr std::size_t kMostSaid = 300;

std::string first_words(int file) {
  const std::string out = text_of_memory_file(file, kMostSaid);
  return join(split(std::string(trim(out)), '\n'), "; ");
}

// Variables of a command's environment, set while it is started.
class NoticeVariables {
 public:
  explicit NoticeVariables(const Notice& n) {
    set("LOCKSTEP_EVENT", n.event);
    set("LOCKSTEP_TEXT", n.text);
    set("LOCKSTEP_RUN", n.run);
    if (n.step >= 0) set("LOCKSTEP_STEP", std::to_string(n.step));
    if (n.cost >= 0) set("LOCKSTEP_SPENT", fmt::format("{:.4f}", n.cost));
    if (n.exit_code >= 0) set("LOCKSTEP_EXIT_CODE", std::to_string(n.exit_code));
  }
  ~NoticeVariables() {
    for (const char* name : names_) ::unsetenv(name);
  }
  NoticeVariables(const NoticeVariables&) = delete;
  NoticeVariables& operator=(const NoticeVariables&) = delete;

 private:
  void set(const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), 1);
    names_.push_back(name);
  }
  std::vector<const char*> names_;
};

}  // namespace

Notifier::Notifier(std::vector<NotifyTarget> targets, Warn warn) : warn_(std::move(warn)) {
  for (NotifyTarget& target : targets) {
    targets_.push_back(
        {.is = std::move(target), .waiting = {}, .process = -1, .said = {}, .until = {}});
  }
}

Notifier::~Notifier() {
  for (Target& target : targets_) {
    if (target.process < 0) continue;
    ::kill(-target.process, SIGKILL);
    ::waitpid(target.process, nullptr, 0);
  }
}

void Notifier::tell(const Notice& notice) {
  for (Target& target : targets_) {
    target.waiting.push_back(notice);
    if (target.waiting.size() > kMostWaiting) target.waiting.pop_front();
    next(target);
  }
}

void Notifier::hurry() {
  for (Target& target : targets_) {
    while (target.waiting.size() > 1) target.waiting.pop_front();
  }
}

void Notifier::next(Target& target) {
  if (target.process >= 0 || target.waiting.empty()) return;
  const Notice notice = std::move(target.waiting.front());
  target.waiting.pop_front();
  try {
    const std::string body =
        target.is.is_url
            ? nlohmann::json{{"url", target.is.word}, {"body", body_for(target.is.word, notice)}}
                  .dump()
            : json_of(notice) + "\n";
    const Descriptor input = memory_file(body);
    target.said = memory_file("");
    if (target.is.is_url) {  // the URL is a password: it stands in no list of processes
      target.process = start_process({"/proc/self/exe", "notify"}, input.get(), target.said.get(),
                                     target.said.get());
      target.until = Clock::now() + kForUrl;
    } else {
      const NoticeVariables variables(notice);
      target.process = start_process({"/bin/sh", "-c", target.is.word}, input.get(),
                                     target.said.get(), target.said.get());
      target.until = Clock::now() + kForCommand;
    }
  } catch (const Error& error) {
    warn_(fmt::format("--notify {}: {}", target.is.shown, error.what()));
  }
}

void Notifier::end(Target& target, int status, bool in_time) {
  target.process = -1;
  if (!in_time) {
    warn_(fmt::format("--notify {}: did not end in time: killed", target.is.shown));
  } else if (status != 0) {
    std::string said = first_words(target.said.get());
    const std::string how = WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                              : fmt::format("signal {}", WTERMSIG(status));
    if (target.is.is_url && said.starts_with("error: ")) said.erase(0, 7);
    warn_(fmt::format("--notify {}: {}", target.is.shown,
                      target.is.is_url && !said.empty() ? said
                      : said.empty()                    ? how
                                                        : how + ": " + said));
  }
  target.said.close();
  next(target);
}

void Notifier::collect() {
  for (Target& target : targets_) {
    int status = 0;
    if (target.process < 0 || ::waitpid(target.process, &status, WNOHANG) != target.process) {
      continue;
    }
    ::kill(-target.process, SIGKILL);  // what a command left behind
    end(target, status, true);
  }
}

void Notifier::check_time(Clock::time_point now) {
  for (Target& target : targets_) {
    if (target.process < 0 || now < target.until) continue;
    ::kill(-target.process, SIGKILL);
    ::waitpid(target.process, nullptr, 0);
    end(target, 0, false);
  }
}

std::optional<Clock::time_point> Notifier::next_deadline() const {
  std::optional<Clock::time_point> out;
  for (const Target& target : targets_) {
    if (target.process >= 0) out = earlier(out, target.until);
  }
  return out;
}

bool Notifier::idle() const {
  return std::all_of(targets_.begin(), targets_.end(), [](const Target& target) {
    return target.process < 0 && target.waiting.empty();
  });
}

}  // namespace lockstep
