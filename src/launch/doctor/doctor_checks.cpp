// Judges the hosts that a doctor examined; every check is a function that adds its findings.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "kernels/number_formats.h"
#include "launch/doctor/doctor_findings.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kClockNoted = 0.1, kClockWrong = 1;  // seconds
constexpr double kSlowMachine = 0.15;                 // below the median
constexpr double kBusy = 0.5;                         // load per core
constexpr double kLogBytes = 100e6;                   // a run folder's logs and metrics

class HostChecks : public detail::Findings {
 public:
  using Findings::Findings;

  std::vector<DoctorFinding> all() {
    check_reach();
    if (!answering_.empty()) {
      check_versions();
      check_clocks();
      check_load();
      check_memory();
      check_disks();
      check_files();
      check_gpus();
      check_layout();
      check_precision();
      check_speed();
    }
    return take();
  }

 private:
  void check_reach() {
    for (const HostReport& host : report_.hosts) {
      if (!host.failure) continue;
      std::string text = host.failure->describe(), advice;
      const std::size_t at = text.find("\n  try: ");
      if (at != std::string::npos) {
        advice = text.substr(at + 8);
        text.resize(at);
      }
      add({Judgement::kFail, "reach", host.name, text, "ssh without a question, and lockstep there",
           advice});
    }
    fine("reach",
         fmt::format("{} host{} answered", answering_.size(), answering_.size() == 1 ? "" : "s"));
  }

  void check_versions() {
    const Json& first = answering_.front()->facts.at("versions");
    const std::string& first_name = answering_.front()->name;
    for (const HostReport* host : answering_) {
      const Json& versions = host->facts.at("versions");
      for (const char* what : {"lockstep", "libtorch", "driver"}) {
        const std::string here = versions.value(what, ""), there = first.value(what, "");
        if (here == there) continue;
        const bool driver = std::string(what) == "driver";
        add({driver ? Judgement::kWarn : Judgement::kFail, "versions", host->name,
             fmt::format("{} {}", what, here.empty() ? "none" : here),
             fmt::format("{}, as {} has", there.empty() ? "none" : there, first_name),
             driver ? "the same driver on all hosts"
                    : "lockstep cluster setup installs one everywhere"});
      }
    }
    fine("versions", fmt::format("lockstep {}, libtorch {}", first.value("lockstep", ""),
                                 first.value("libtorch", "")));
  }

  void check_clocks() {
    std::vector<double> ahead;
    for (const HostReport* host : answering_) ahead.push_back(host->clock_ahead_seconds);
    std::sort(ahead.begin(), ahead.end());
    const double middle = ahead[(ahead.size() - 1) / 2];
    double most = 0;
    for (const HostReport* host : answering_) {
      const double off = host->clock_ahead_seconds - middle;
      most = std::max(most, std::abs(off));
      if (std::abs(off) - host->clock_error_seconds <= kClockNoted) continue;
      add({Judgement::kWarn, "clock", host->name,
           fmt::format("{:.2f} s {} of the others", std::abs(off), off > 0 ? "ahead" : "behind"),
           fmt::format("within {} s", std::abs(off) > kClockWrong ? kClockWrong : kClockNoted),
           "start chrony or systemd-timesyncd there: times in logs and metrics cannot be "
           "compared"});
    }
    fine("clock", fmt::format("within {:.0f} ms", most * 1e3));
  }

  void check_load() {
    for (const HostReport* host : answering_) {
      const double load = host->facts.at("load"), cores = host->facts.at("cores");
      if (load <= kBusy * cores) continue;
      add({Judgement::kWarn, "load", host->name,
           fmt::format("load {:.1f} on {} cores", load, static_cast<int>(cores)), "an idle machine",
           "see what runs there: top, or lockstep cluster run -- ps aux --sort=-%cpu"});
    }
    fine("load", "no other work");
  }

  void check_memory() {
    for (const HostReport* host : answering_) {
      const double free = host->facts.at("free_memory_bytes");
      const double total = host->facts.at("memory_bytes");
      const double wanted = static_cast<double>(needs_.memory_bytes) * host->ranks;
      if (free < wanted) {
        add({Judgement::kFail, "memory", host->name, short_bytes(free) + " free",
             fmt::format("{} for process, weights, gradients and optimizer of {} rank{}, and more "
                         "for activations",
                         short_bytes(wanted), host->ranks, host->ranks == 1 ? "" : "s"),
             "fewer ranks there, training.shard_optimizer=true, or a larger machine"});
      } else if (free < 0.1 * total) {
        add({Judgement::kWarn, "memory", host->name,
             fmt::format("{} of {} free", short_bytes(free), short_bytes(total)), "most of it free",
             "end what uses it"});
      }
    }
    fine("memory", "enough");
  }

  void check_disks() {
    for (std::size_t i = 0; i < answering_.size(); ++i) {
      const HostReport& host = *answering_[i];
      for (const Json& disk : host.facts.at("disks")) {
        const std::string path = disk.at("path");
        const bool run = path == needs_.run_folder;
        // Rank 0's host stores the checkpoints, the others only logs.
        const double wanted =
            run ? (&host == &report_.hosts.front() ? static_cast<double>(needs_.disk_bytes) : 0) +
                      kLogBytes
                : kLogBytes;
        const double free = disk.at("free_bytes");
        if (run && !disk.value("writable", false)) {
          add({Judgement::kFail, "disk", host.name,
               disk.value("below", path) + " cannot be written", "a folder for the run in it",
               "another run.folder, or other permissions"});
        }
        if (free >= wanted) continue;
        add({run ? Judgement::kFail : Judgement::kWarn, "disk", host.name,
             fmt::format("{} free for {}", short_bytes(std::max(0.0, free)), path),
             short_bytes(wanted) + (run ? " for checkpoints and logs" : ""),
             "free some, a smaller checkpoint.keep, or a run.folder on another disk"});
      }
    }
    fine("disk", "enough space");
  }

  // Checks that configuration and corpus exist, are whole, and are equal on all hosts.
  void check_files() {
    if (needs_.config.empty()) return;
    for (const HostReport* host : answering_) {
      if (!host->facts.value("folder_there", true)) {
        add({Judgement::kFail, "files", host->name, "no folder " + needs_.folder,
             "the folder in which the command is given, as paths are relative to it",
             "copy it, or mount a shared file system: lockstep cluster setup --mount"});
      }
    }
    compare_files("config", needs_.config);
    if (!needs_.corpus.empty()) compare_files("corpus", needs_.corpus);
    fine("files", needs_.corpus.empty()
                      ? "the configuration is equal everywhere"
                      : "configuration and corpus are whole and equal everywhere");
  }

  void compare_files(const char* what, const std::string& path) {
    std::map<std::string, std::vector<std::string>> by_hash;
    for (const HostReport* host : answering_) {
      const Json facts = host->facts.value(what, Json::object());
      const std::string problem = facts.value("problem", "not looked at");
      if (!problem.empty()) {
        add({Judgement::kFail, "files", host->name, fmt::format("{}: {}", what, problem),
             "the same files on every host", "copy " + path + " there, or share it"});
        continue;
      }
      by_hash[facts.at("hash")].push_back(host->name);
    }
    if (by_hash.size() < 2) return;
    for (const auto& [hash, names] : by_hash) {
      if (hash == answering_.front()->facts.at(what).at("hash").get<std::string>()) continue;
      add({Judgement::kFail, "files", join(names, ", "),
           fmt::format("another {}: {} has the hash {:.12}", what, path, hash),
           fmt::format("{:.12}, as on {}",
                       answering_.front()->facts.at(what).at("hash").get<std::string>(),
                       answering_.front()->name),
           "copy it from one host to all"});
    }
  }

  void check_gpus() {
    for (const HostReport* host : answering_) {
      const std::size_t gpus = host->facts.at("gpus").size();
      const auto ranks = static_cast<std::size_t>(host->ranks);
      const std::size_t wanted = needs_.shares_gpus ? 1 : ranks;
      if (gpus < wanted && ((gpus > 0 && needs_.device != "cpu") || needs_.wants_gpu())) {
        add({Judgement::kFail, "gpus", host->name, fmt::format("{} GPUs for {} ranks", gpus, ranks),
             "a GPU for each rank", "fewer ranks there (-n auto), or run.device=cpu"});
      }
      const Json compute = host->facts.value("compute", Json::object());
      if (compute.value("gpus_seen", 0) > compute.value("gpus", 0) && needs_.device != "cpu") {
        add({Judgement::kWarn, "gpus", host->name,
             fmt::format("{} GPU{}, but none can be used: {}", compute.value("gpus_seen", 0),
                         compute.value("gpus_seen", 0) == 1 ? "" : "s",
                         compute.value("why_no_gpu", "")),
             "GPUs that compute",
             "a driver and a build of torch that fit (docs/install.md#gpus), or run.device=cpu"});
      }
      const std::size_t cores = host->facts.at("cores");
      if (gpus == 0 && ranks > cores) {
        add({Judgement::kWarn, "gpus", host->name,
             fmt::format("{} ranks on {} cores", ranks, cores), "at most a rank a core",
             "fewer ranks there"});
      }
    }
  }

  void check_layout() {
    for (const HostReport* host : answering_) {
      if (!host->layout.empty()) add({Judgement::kOk, "ranks", host->name, host->layout});
    }
  }

  // Reports what run.precision = "auto" would be, or whether the hardware computes what is asked
  // for.
  void check_precision() {
    std::vector<NamedFormats> all;
    for (const HostReport* host : answering_) {
      const Json compute = host->facts.value("compute", Json::object());
      if (compute.empty()) continue;  // another version, which is a finding already
      all.push_back(
          {host->name, {compute.at("bf16"), compute.at("fp16"), compute.at("formats_why")}});
    }
    if (all.empty()) return;
    const PrecisionChoice choice = choose_precision(all);
    const bool chosen = needs_.precision == "auto";
    // With "auto", bf16 is wanted if any host computes it.
    const bool mixed = std::any_of(all.begin(), all.end(),
                                   [](const NamedFormats& host) { return host.formats.bf16; });
    const std::string wanted = !chosen ? needs_.precision : mixed ? "bf16" : choice.precision;
    for (const NamedFormats& host : all) {
      if (host.formats.has(wanted)) continue;
      add({Judgement::kWarn, "precision", host.name,
           chosen
               ? fmt::format("{}; the run would compute in {}", host.formats.why, choice.precision)
               : fmt::format("{} is slow there: {}", wanted, host.formats.why),
           "hardware that computes " + wanted,
           chosen ? "leave it out, where the others are much faster in " + wanted
                  : "run.precision=auto"});
    }
    fine("precision",
         chosen ? fmt::format("{} (auto: {})", choice.precision, choice.why) : needs_.precision);
  }

  void check_speed() {
    for (const char* what : {"bf16_flops", "fp32_flops", "copied_bytes_per_second"}) {
      std::vector<double> values;
      for (const HostReport* host : answering_) values.push_back(host->speed.at(what));
      std::sort(values.begin(), values.end());
      const double middle = values[values.size() / 2];  // of two, the faster
      for (const HostReport* host : answering_) {
        const double value = host->speed.at(what);
        if (value >= (1 - kSlowMachine) * middle) continue;
        const bool memory = std::string(what) == "copied_bytes_per_second";
        add({Judgement::kWarn, "speed", host->name,
             memory ? fmt::format("copies {}/s", short_bytes(value))
                    : fmt::format("{:.0f} Gflop/s in {:.4}", value * 1e-9, what),
             memory ? short_bytes(middle) + "/s, the median"
                    : fmt::format("{:.0f} Gflop/s, the median", middle * 1e-9),
             "every step waits for the slowest machine: leave it out, or see what else runs "
             "there"});
      }
    }
    fine("speed", answering_.size() > 1 ? "all alike" : "measured");
  }
};

}  // namespace

std::vector<DoctorFinding> judge(const DoctorReport& report, const DoctorNeeds& needs) {
  std::vector<DoctorFinding> out = HostChecks(report, needs).all();
  const auto answers = [](const HostReport& host) { return !host.failure; };
  if (std::count_if(report.hosts.begin(), report.hosts.end(), answers) > 1) {
    std::vector<DoctorFinding> links = detail::judge_links(report, needs);
    out.insert(out.end(), links.begin(), links.end());
  }
  return out;
}

}  // namespace lockstep
