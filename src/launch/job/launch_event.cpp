#include "launch/job/launch_event.h"

#include "base/clock.h"
#include "base/text.h"

namespace lockstep {

LaunchEvent start_event(const Attempt& attempt, std::size_t all_hosts, double waited) {
  LaunchEvent out{.event = "start", .text = "", .seconds = waited};
  if (attempt.number == 0) return out;
  out.text = fmt::format("attempt {}: {}", attempt.number, counted(attempt.ranks, "rank"));
  if (all_hosts > 1) {
    out.text += fmt::format(" on {} of {}", attempt.hosts.size(), counted(all_hosts, "host"));
  }
  return out;
}

LaunchEvent failure_event(const RankEnd& end, const std::string& name, bool others_run) {
  return {.event = "failure",
          .text = fmt::format("{} {}{}", name, describe_end(end),
                              others_run ? "; stopping the others" : ""),
          .rank = end.rank,
          .exit_code = exit_code_for(end)};
}

LaunchEvent restart_event(int attempt, std::chrono::milliseconds delay, int number, int most) {
  const double seconds = seconds_of(delay);
  const std::string when = delay.count() == 0 ? "now" : fmt::format("in {:g} s", seconds);
  return {.event = "restart",
          .text = fmt::format("attempt {} starts {} (restart {} of {} without progress)", attempt,
                              when, number, most),
          .seconds = seconds};
}

LaunchEvent stop_event(int signal, int ranks, std::chrono::milliseconds grace) {
  return {.event = "signal",
          .text = fmt::format("{}: stopping {} ({} to finish; Ctrl-C again kills)",
                              signal_name(signal), ranks == 1 ? "the rank" : "all ranks",
                              short_duration(seconds_of(grace)))};
}

LaunchEvent first_step_event(const std::string& step, double seconds, bool after_failure) {
  LaunchEvent out{.event = "first_step", .text = "", .seconds = seconds};
  if (after_failure) {
    out.text = fmt::format("step {} done {:.1f} s after the ranks stopped", step, seconds);
  }
  return out;
}

LaunchEvent budget_event(const std::string& spent, bool ends) {
  return {.event = "budget",
          .text = fmt::format("{} is spent{}", spent,
                              ends ? ": the ranks save a checkpoint and end" : "")};
}

LaunchEvent replaced_event(int host, const std::string& old, const std::string& name) {
  return {.event = "host_replaced",
          .text = old == name ? fmt::format("host {} is another machine now", name)
                              : fmt::format("host {} takes the place of {}", name, old),
          .host = host};
}

LaunchEvent back_event(int host, const std::string& name, std::size_t now, std::size_t all_hosts) {
  return {
      .event = "host_back",
      .text = fmt::format("host {} is back: stopping after a checkpoint, to go on with {} of {}",
                          name, now, counted(all_hosts, "host")),
      .host = host};
}

LaunchEvent away_event(int host, const std::string& name) {
  return {.event = "host_away",
          .text = fmt::format("host {} stays away: going on without it", name),
          .host = host};
}

LaunchEvent reclaimed_event(int host, const std::string& name, int signal) {
  return {.event = "reclaimed",
          .text = fmt::format("{} got {}: all ranks save a checkpoint",
                              name.empty() ? "a rank" : "host " + name, signal_name(signal)),
          .host = host};
}

LaunchEvent notice_event(int host, const std::string& name, const HostNotice& notice, bool saves) {
  const std::string who = name.empty() ? "this machine" : "host " + name;
  if (notice.withdrawn) {
    return {.event = "notice_withdrawn",
            .text = fmt::format("{} stays: {} withdrew its notice ({})", who, notice.cloud,
                                notice.action),
            .host = host,
            .notice = notice};
  }
  return {.event = "notice",
          .text = fmt::format("{} is taken away by {} in {} ({}){}", who, notice.cloud,
                              short_duration(notice.seconds_left), notice.action,
                              saves ? ": all ranks save a checkpoint" : ""),
          .host = host,
          .seconds = notice.seconds_left,
          .notice = notice};
}

}  // namespace lockstep
