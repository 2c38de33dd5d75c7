#include "launch/job/launch_log.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/date.h"
#include "base/text.h"

namespace lockstep {

std::string time_of_day() { return local_date(std::time(nullptr), "%H:%M:%S"); }

LaunchLog::LaunchLog(RankOutput& output, std::filesystem::path file, std::string run_id)
    : output_(output), file_(std::move(file)), run_id_(std::move(run_id)) {}

void LaunchLog::note(const LaunchEvent& event, const Attempt& attempt, const std::string& host) {
  if (!event.text.empty()) {
    output_.note(fmt::format("lockstep launch {}: {}", time_of_day(), event.text));
  }
  auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  nlohmann::ordered_json json = {
      {"time", std::chrono::duration<double>(since_epoch).count()},
      {"event", event.event},
      {"run_id", run_id_},
      {"attempt", attempt.number},
      {"ranks", attempt.ranks},
      {"hosts", attempt.hosts.size()},
  };
  if (!host.empty()) json["host"] = host;
  if (event.rank >= 0) json["rank"] = event.rank;
  if (event.seconds >= 0) json["seconds"] = event.seconds;
  if (!event.notice.cloud.empty()) {
    json["cloud"] = event.notice.cloud;
    json["action"] = event.notice.action;
    json["deadline"] = event.notice.deadline;
  }
  if (event.exit_code >= 0) json["exit_code"] = event.exit_code;
  if (event.cost >= 0) json["cost"] = event.cost;
  if (event.per_hour >= 0) json["per_hour"] = event.per_hour;
  if (!event.text.empty()) json["text"] = to_utf8(to_code_points(event.text));
  write(json.dump() + "\n");
}

void LaunchLog::open() {
  if (open_) return;
  open_ = true;
  std::vector<std::string> held = std::move(held_);
  for (const std::string& line : held) write(line);
}

void LaunchLog::write(const std::string& line) {
  if (file_.empty() || failed_) return;
  if (!open_) {
    held_.push_back(line);
    return;
  }
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  Descriptor file(::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file.open() && write_all(file.get(), line)) return;
  failed_ = true;  // the job continues without its log
  output_.note(fmt::format("lockstep launch: {}: cannot be written: {}", file_.string(),
                           std::strerror(errno)));
}

}  // namespace lockstep
