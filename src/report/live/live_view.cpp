#include "report/live/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "report/run/read_json.h"

namespace lockstep {
namespace {

constexpr double kStale = 5;  // seconds; the file is rewritten every second
constexpr const char *kBold = "\x1b[1m", *kRed = "\x1b[31m", *kFaint = "\x1b[2m",
                     *kPlain = "\x1b[0m";

std::string cut(std::string text, std::size_t most) {
  if (text.size() > most) text.resize(most);
  return text;
}

// Returns "12.1M": bytes per second in four or five characters.
std::string short_rate(double bytes) { return bytes < 1 ? "0" : short_number(bytes); }

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f}%", 100 * part / whole) : "-";
}

std::string state_of(const ReadJson& rank, const ReadJson& live) {
  std::string state = word(rank, "state");
  if (state == "silent") {
    return fmt::format("silent {}", short_duration(number(rank, "seen_seconds")));
  }
  const ReadJson& slowest = live.value("slowest", ReadJson());
  bool slow = slowest.is_object() && number(slowest, "rank") == number(rank, "rank");
  if (state == "ok" && slow) return fmt::format("{:.2f}x slow", number(slowest, "factor"));
  return state;
}

std::string rank_line(const ReadJson& rank, const ReadJson& live) {
  const ReadJson usage = rank.value("usage", ReadJson::object());
  double compute = number(rank, "compute_seconds"), wait = number(rank, "wait_seconds"),
         data = number(rank, "data_seconds"), step = compute + wait + data;
  double in = number(usage, "in_bytes_per_second"), out = number(usage, "out_bytes_per_second"),
         link = number(usage, "link_bytes_per_second");
  return fmt::format(
      "{:>4} {:<10} {:>7} {:<10} {:>5} {:>4} {:>4} {:>4} {:>4.1f}/{:<2.0f} {:>8} {:>5} {:>5} {:>4} "
      "{}",
      number(rank, "rank"), cut(word(rank, "host"), 10), with_commas(whole(rank, "step")),
      word(rank, "phase"), step > 0 ? short_number(number(rank, "targets_per_second")) : "-",
      percent(compute, step), percent(wait, step), percent(data, step), number(usage, "cores"),
      number(usage, "machine_cores"), short_bytes(number(usage, "memory_bytes")), short_rate(in),
      short_rate(out), percent(std::max(in, out), link), state_of(rank, live));
}

// Returns "      gpu 0 87% 12.0/16.0 GB 61 W 64 C; gpu 1 ...", to go below the rank that samples
// them; empty without GPUs.
std::string gpu_line(const ReadJson& rank) {
  std::string out;
  int index = 0;
  for (const ReadJson& gpu : rank.value("gpus", ReadJson::array())) {
    out += fmt::format("{} gpu {}", out.empty() ? "    " : ";", index++);
    if (gpu.contains("use")) out += fmt::format(" {:.0f}%", 100 * number(gpu, "use"));
    if (gpu.contains("memory_bytes")) {
      out += fmt::format(" {:.1f}/{:.1f} GB", number(gpu, "memory_used_bytes") * 1e-9,
                         number(gpu, "memory_bytes") * 1e-9);
    }
    if (gpu.contains("watts")) out += fmt::format(" {:.0f} W", number(gpu, "watts"));
    if (gpu.contains("temperature")) out += fmt::format(" {:.0f} C", number(gpu, "temperature"));
  }
  return out;
}

std::string title_line(const ReadJson& live, const LiveViewOptions& options) {
  auto step = whole(live, "step"), total = whole(live, "total_steps");
  std::string share = total > 0 ? fmt::format(" ({:.1f}%)", 100.0 * static_cast<double>(step) /
                                                                static_cast<double>(total))
                                : "";
  std::string attempt =
      number(live, "attempt") > 0 ? fmt::format("  restarts {:.0f}", number(live, "attempt")) : "";
  return fmt::format("{}  step {}/{}{}  epoch {:.0f}  loss {:.3f}  lr {:.2e}{}", options.run,
                     with_commas(step), with_commas(total), share, number(live, "epoch"),
                     number(live, "loss"), number(live, "learning_rate"), attempt);
}

// What the launcher's price makes of the time; empty without one.
std::string cost_text(const ReadJson& live, double now) {
  const auto cost = live.find("cost");
  if (cost == live.end() || !cost->is_object()) return "";
  const double spent =
      number(*cost, "before") + number(*cost, "per_hour") * (now - number(*cost, "began")) / 3600;
  const double budget = number(*cost, "budget");
  return budget > 0 ? fmt::format("  spent {:.2f} of {:.2f}", spent, budget)
                    : fmt::format("  spent {:.2f}", spent);
}

std::string state_line(const ReadJson& live, const LiveViewOptions& options) {
  std::string state = word(live, "state");
  double age = options.now - number(live, "time");
  std::string took = short_duration(number(live, "time") - number(live, "started"));
  if (state == "ended") {
    return fmt::format("ended ({}) after {}{}", word(live, "reason"), took,
                       cost_text(live, number(live, "time")));
  }
  if (state == "failed") return fmt::format("failed after {}: {}", took, word(live, "reason"));
  std::string out = fmt::format(
      "{} {}/s  eta {}  running for {}", short_number(number(live, "targets_per_second")),
      word(live, "unit"), short_duration(number(live, "eta_seconds")), took);
  out += cost_text(live, options.now);
  if (age > kStale) out += fmt::format("  no news for {}", short_duration(age));
  return out;
}

// Returns what the figures of the table do not say.
std::vector<std::string> remarks(const ReadJson& live) {
  std::vector<std::string> out;
  const ReadJson& slowest = live.value("slowest", ReadJson());
  if (slowest.is_object() && word(live, "state") == "running") {
    out.push_back(fmt::format("slowest: rank {}, {:.2f} times as slow as the others: {}",
                              number(slowest, "rank"), number(slowest, "factor"),
                              word(slowest, "guess")));
  }
  for (const ReadJson& rank : live.at("ranks")) {
    double waited = number(rank, "waiting_seconds");
    constexpr double kLong = 5;
    if (waited < kLong || word(live, "state") != "running") continue;
    out.push_back(fmt::format("rank {} waits in operation {} for {}", number(rank, "rank"),
                              number(rank, "waiting_in"), short_duration(waited)));
  }
  std::string saved = word(live, "checkpoint"), measured = word(live, "evaluation");
  if (!saved.empty() || !measured.empty()) {
    out.push_back(fmt::format("{}{}{}", saved.empty() ? "" : "saved " + saved,
                              saved.empty() || measured.empty() ? "" : "; ",
                              measured.empty() ? "" : "evaluated at " + measured));
  }
  return out;
}

}  // namespace

ReadJson parse_live(const std::string& text, const std::string& where) {
  ReadJson live = ReadJson::parse(text, nullptr, false);
  if (live.is_object() && live.contains("ranks") && live["ranks"].is_array()) return live;
  throw DataError("{}: is no state of a run", where);
}

ReadJson read_live(const fs::path& run) {
  const fs::path file = run / "live.json";
  if (fs::exists(file)) return parse_live(read_file(file), file.string());
  if (fs::exists(run / "config.toml")) {
    DataError error("{}: nothing to watch yet: no live.json", run.string());
    error.set_advice("rank 0 writes it once training begins; its log is in logs/rank00.log");
    throw error;
  }
  DataError error("{}: holds no run", run.string());
  error.set_advice("the folder that `lockstep train` writes, as runs/quickstart");
  throw error;
}

ReadJson only_ranks(ReadJson live, const RankFilter& ranks) {
  ReadJson kept = ReadJson::array();
  for (const ReadJson& rank : live["ranks"]) {
    if (ranks.has(static_cast<int>(number(rank, "rank")))) kept.push_back(rank);
  }
  live["ranks"] = std::move(kept);
  return live;
}

std::string live_table(const ReadJson& live, const LiveViewOptions& options) {
  auto painted = [&](const char* color, const std::string& line) {
    std::string text = options.width > 0 ? cut(line, options.width) : line;
    return options.color && *color != '\0' ? fmt::format("{}{}{}\n", color, text, kPlain)
                                           : text + "\n";
  };
  std::string out = painted(kBold, title_line(live, options));
  bool bad = word(live, "state") == "failed" || options.now - number(live, "time") > kStale;
  out += painted(bad && word(live, "state") != "ended" ? kRed : "", state_line(live, options));
  out += painted(kFaint,
                 fmt::format("{:>4} {:<10} {:>7} {:<10} {:>5} {:>4} {:>4} {:>4} {:>7} {:>8} {:>5} "
                             "{:>5} {:>4} {}",
                             "rank", "host", "step", "phase", word(live, "unit") + "/s", "comp",
                             "wait", "data", "cpu", "memory", "in/s", "out/s", "link", "state"));
  const ReadJson shown = only_ranks(live, options.ranks);
  for (const ReadJson& rank : shown.at("ranks")) {
    std::string line = rank_line(rank, live), state = state_of(rank, live);
    bool ok = state == "ok" || state == "done";
    const char* color = state.ends_with("slow") ? kBold : ok ? "" : kRed;
    out += painted(color, line);
    if (const std::string gpus = gpu_line(rank); !gpus.empty()) out += painted(kFaint, gpus);
  }
  for (const std::string& remark : remarks(live)) out += painted("", remark);
  return out;
}

}  // namespace lockstep
