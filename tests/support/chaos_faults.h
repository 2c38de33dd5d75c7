// What can happen to a training in tests/reliability/commands/chaos_test.cpp: four ranks on two
// virtual hosts that share nothing, and the faults that are drawn for them.
#pragma once

#include <signal.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>

#include "support/chaos_parts.h"
#include "support/faults.h"
#include "support/tiny_images.h"

namespace lockstep {

class ChaosHosts : public ApartRuns {
 protected:
  explicit ChaosHosts(const Training* training = nullptr)
      : training_(training != nullptr ? *training : training_of(seed_)) {}
  // Ends what was started, and says what it printed if the test failed.
  virtual void end_job() = 0;
  virtual void signal_launcher(int signal) = 0;

  static void SetUpTestSuite() {
    ApartRuns::SetUpTestSuite();
    if (!failure_.empty()) return;
    const fs::path shards = folder_->path() / "desk/shards";
    write_tiny_images(folder_->path() / "tree", {.train = 12, .val = 4});
    const ProgramResult made =
        run_lockstep(fmt::format("prepare images {} --out {} --shard-bytes 12000",
                                 (folder_->path() / "tree").string(), shards.string()));
    if (made.exit_code != 0) failure_ = made.errors;
    write_tiny_image_config(folder_->path() / "desk/images.toml", "shards");
  }
  void SetUp() override {
    SKIP_WITHOUT_VIRTUAL_HOSTS();
    ApartRuns::SetUp();
    hosts_ = std::make_unique<HostsApart>(
        ApartOptions{.network = "delay_ms = 0.1\nrate_mbit = 1000\ncontrol = 'separate'"});
    programs_ = std::make_unique<HostPrograms>(*hosts_);
    bring(*hosts_);
    for (int shard = 0; shard < 4; ++shard) {  // each on one of the hosts
      const std::string file = fmt::format("work/shards/train-{:05}.shard", shard);
      ASSERT_TRUE(fs::remove(hosts_->file(shard % 2 == 0 ? "a" : "b", file))) << file;
    }
    for (const char* host : {"a", "b"}) {
      steady(host, {});
      const auto [code, text] =
          hosts_->run(host, fmt::format("echo /opt/lockstep/bin/{} >/etc/ld.so.preload",
                                        fs::relative(LOCKSTEP_UNSTEADY_MACHINE,
                                                     fs::canonical(LOCKSTEP_PROGRAM).parent_path())
                                            .string()));
      ASSERT_EQ(code, 0) << text;
    }
    steady("control", {});
  }
  void TearDown() override {
    end_job();  // before its hosts
    hosts_.reset();
  }

  struct Fault {
    std::string text;              // "kill -9 of rank 2"
    bool restarts = true;          // the ranks start again; false: nothing may happen
    bool ends_job = false;         // the launcher ends, and is started again with --resume
    bool follows = true;           // may come while another one is endured
    std::string host;              // the one whose power or network is meant
    std::set<std::string> spoils;  // hosts that have their newest checkpoint no more
    std::function<void()> begin;
    double lasts = 0;  // seconds until it ends
    std::function<void()> end = [] {};
  };

  // How the clock and the disk of a host, or of the launcher's machine, are from now on
  // (tests/support/unsteady_machine.cpp).
  struct Unsteady {
    int64_t clock_seconds = 0;  // ahead
    int disk_milliseconds = 0;  // before each change of a file
  };
  fs::path desk_state() const { return desk() / "unsteady"; }
  void steady(const std::string& host, const Unsteady& now) {
    unsteady_[host] = now;
    const std::string text =
        fmt::format("{:<31}\n", fmt::format("{} {}", now.clock_seconds, now.disk_milliseconds));
    if (off_.contains(host)) return;  // until it is on again
    const std::string file = host == "control" ? desk_state().string() : "/etc/lockstep-unsteady";
    const auto [code, said] =  // in place: processes have it mapped
        hosts_->run(host, fmt::format("printf '%s' '{}' 1<>{}", text, file));
    ASSERT_EQ(code, 0) << said;
  }

  // --- what can happen

  Fault signal_to_rank(const std::string& signal, int rank) {
    return {.text = fmt::format("kill -{} of rank {}", signal, rank),
            .begin = [=, this] { signal_rank(rank, signal); }};
  }
  Fault kill_agent(const std::string& host) {
    return {.text = "kill -9 of the agent on " + host, .begin = [=, this] {
              for (int process : programs_->processes_in(host, " agent ")) {
                hosts_->run(host, fmt::format("kill -9 {}", process));
              }
            }};
  }
  Fault kill_launcher(int signal) {
    return {.text = fmt::format("signal {} to the launcher", signal),
            .ends_job = true,
            .begin = [=, this] { signal_launcher(signal); }};
  }
  // A rank that only begins ends of the signal by itself, and the job does not.
  Fault reclaim(int rank) {
    return {.text = fmt::format("SIGTERM to rank {}: its machine is reclaimed", rank),
            .ends_job = true,
            .follows = false,
            .begin = [=, this] { signal_rank(rank, "TERM"); }};
  }
  Fault pause_rank(int rank, double seconds) {
    return {.text = fmt::format("rank {} stands still for {:.1f} s", rank, seconds),
            .restarts = false,
            .begin = [=, this] { signal_rank(rank, "STOP"); },
            .lasts = seconds,
            .end = [=, this] { programs_->try_signal_rank(rank, "CONT"); }};
  }
  // `network` is "data", that of the ranks, "control", that of launcher and agents, or "all".
  Fault cut(const std::string& host, double seconds, bool one_way,
            const std::string& network = "data") {
    return {.text = fmt::format("{} cut {} for {:.1f} s{}", host, one_way ? "one way" : "off",
                                seconds, network == "data" ? "" : " (" + network + ")"),
            .restarts = seconds > 5,
            .host = host,
            .begin =
                [=, this] {
                  LabEvent event;
                  event.action = "cut";
                  event.hosts = {host};
                  event.direction = one_way ? "out" : "both";
                  event.network = network;
                  event.lasts = seconds;
                  hosts_->lab().apply(event);
                },
            .lasts = seconds};
  }
  Fault slow_link(double seconds, double delay_ms) {
    return {.text = fmt::format("{:.0f} ms of delay for {:.1f} s", delay_ms, seconds),
            .restarts = false,
            .host = "a",
            .begin =
                [=, this] {
                  LabEvent event;
                  event.action = "set";
                  event.hosts = {"a"};
                  event.delay_ms = delay_ms;
                  event.lasts = seconds;
                  hosts_->lab().apply(event);
                },
            .lasts = seconds};
  }
  Fault power(const std::string& host, double seconds) {
    return {.text = fmt::format("power of {} off for {:.1f} s", host, seconds),
            .host = host,
            .begin = [=, this] { switch_off(host); },
            .lasts = seconds,
            .end = [=, this] { switch_on(host); }};
  }
  // Another machine in the place of a host: it has the program and the data, but not the run.
  Fault replaced(const std::string& host, double seconds) {
    return {.text = fmt::format("{} is lost, another in its place after {:.1f} s", host, seconds),
            .host = host,
            .spoils = {host},
            .begin =
                [=, this] {
                  switch_off(host);
                  for (std::string& line : raw_metrics(host)) {
                    lost_[host].push_back(std::move(line));
                  }
                  fs::remove_all(run_on(*hosts_, host, "run"));
                },
            .lasts = seconds,
            .end = [=, this] { switch_on(host); }};
  }
  // A file of the newest checkpoint changes on some hosts, and then a rank is killed.
  Fault damage(const std::set<std::string>& hosts, bool cuts_short, int rank) {
    return {.text = fmt::format("the newest checkpoint of {} {}, kill -9 of rank {}",
                                fmt::join(hosts, " and "),
                                cuts_short ? "cut short" : "with a flipped bit", rank),
            .follows = false,  // what is being read would change
            .spoils = hosts,
            .begin = [=, this] {
              // Between two checkpoints, so that the one that is damaged is not written any more.
              signal_rank(rank, "STOP");
              std::this_thread::sleep_for(std::chrono::milliseconds(300));
              for (const std::string& host : hosts) damage_newest(checkpoints_of(host), cuts_short);
              signal_rank(rank, "KILL");
            }};
  }
  // No file of a host's ranks may grow beyond a kilobyte, as with a quota that is used up: the next
  // checkpoint ends the one that keeps them.
  Fault full_disk(const std::string& host) {
    return {.text = "no room for files on " + host,
            .follows = false,  // ranks that end anyway would be limited
            .begin = [=, this] {
              const auto [code, text] = hosts_->run_as_user(
                  host, fmt::format("done=1; for p in {}; do prlimit --fsize=1000:1000 --pid $p && "
                                    "done=0; done; exit $done",  // one may have ended the others
                                    fmt::join(programs_->processes_in(host, " train "), " ")));
              ASSERT_EQ(code, 0) << text;
            }};
  }
  Fault clock(const std::string& host, int64_t seconds) {
    return {.text = fmt::format("the clock of {} jumps to {:+} s",
                                host == "control" ? "the launcher's machine" : host, seconds),
            .restarts = false,
            .begin = [=, this] {
              steady(host, {seconds, unsteady_[host].disk_milliseconds});
              if (host == "control" || off_.contains(host)) return;
              const double there = std::atof(hosts_->run(host, "date +%s").second.c_str());
              ASSERT_NEAR(there - unix_now(), static_cast<double>(seconds), 5);
            }};
  }
  Fault slow_disk(const std::string& host, double seconds) {
    return {.text = fmt::format("each change of a file takes {} 20 ms for {:.1f} s", host, seconds),
            .restarts = false,
            .begin =
                [=, this] {
                  steady(host, {unsteady_[host].clock_seconds, 20});
                  if (off_.contains(host)) return;
                  const double start = unix_now();
                  hosts_->run(host,
                              "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; done >/root/written");
                  ASSERT_GT(unix_now() - start, 0.2);
                },
            .lasts = seconds,
            .end =
                [=, this] {
                  steady(host, {unsteady_[host].clock_seconds, 0});
                }};
  }

  Fault draw(std::mt19937_64& random, bool kills_alone) {
    const auto below = [&](uint64_t n) { return static_cast<int>(random() % n); };
    const auto seconds = [&](double least, double most) {
      return least + (most - least) * static_cast<double>(random() % 1000) / 1000;
    };
    const std::string host = below(2) == 0 ? "a" : "b";
    const int rank = below(4);
    const auto drawn = static_cast<double>(below(kills_alone ? 6 : 22));
    switch (static_cast<int>(number_of("LOCKSTEP_CHAOS_KIND", drawn))) {
      case 0:
      case 1:
        return signal_to_rank("KILL", rank);
      case 2:
        return signal_to_rank("SEGV", rank);
      case 3:
        return kill_agent(host);
      case 4:
        return kill_launcher(SIGKILL);
      case 5:
        if (training_.stopping_shows) return kill_launcher(SIGKILL);
        // A reclaimed machine is left out for 150 s where the job can go on alone.
        return below(2) == 0 || training_.goes_on_alone ? kill_launcher(SIGTERM) : reclaim(rank);
      case 6:
        return signal_to_rank("STOP", rank);
      case 7:
        return pause_rank(rank, seconds(0.5, 3));
      case 8:
        return cut(host, seconds(0.5, 2.5), below(2) == 0);
      case 9:
        return cut(host, seconds(7, 10), true);
      case 10:
        return cut(host, seconds(7, 10), false);
      case 11:
        return slow_link(seconds(1, 4), seconds(10, 100));
      case 12:
        return power(host, seconds(0.5, 8));
      case 13:
        return damage({host}, below(2) == 0, rank);
      case 14:
        return damage({"a", "b"}, below(2) == 0, rank);
      case 15:
        return full_disk(host);
      case 16:
      case 17: {  // an hour, up to a day; half of them back in time
        const int64_t most = below(2) == 0 ? 3600 : 86400;
        const int64_t jump = below(static_cast<uint64_t>(2 * most)) - most;
        return clock(below(3) == 0 ? "control" : host, jump);
      }
      case 18:
        return replaced(host, seconds(0.5, 8));
      case 19:
      case 20: {
        const double length = below(3) == 0 ? seconds(0.5, 2.5) : seconds(7, 10);
        return cut(host, length, below(2) == 0, below(2) == 0 ? "control" : "all");
      }
      default:
        return slow_disk(host, seconds(2, 5));
    }
  }
  static bool is_one_kind() { return number_of("LOCKSTEP_CHAOS_KIND", -1) >= 0; }
  // Draws what happens while `first` is endured.
  Fault draw_beside(std::mt19937_64& random, const Fault& first) {
    for (;;) {
      Fault out = draw(random, false);
      const bool same = !out.host.empty() && out.host == first.host;
      const bool all = !out.host.empty() && !first.host.empty() && training_.goes_on_alone;
      if (out.follows && !same && !all) return out;
    }
  }

  fs::path checkpoints_of(const std::string& host) const {
    return run_on(*hosts_, host, "run") / "checkpoints";
  }
  fs::path metrics_file(const std::string& host) const {
    return run_on(*hosts_, host, "run") / "metrics.jsonl";
  }
  // The lines of the file; none where rank 0 was never on the host.
  std::vector<std::string> raw_metrics(const std::string& host) const {
    return fs::exists(metrics_file(host)) ? read_lines(metrics_file(host))
                                          : std::vector<std::string>();
  }

  const uint64_t seed_ = static_cast<uint64_t>(number_of("LOCKSTEP_CHAOS_SEED", 1));
  const Training& training_;
  std::unique_ptr<HostsApart> hosts_;
  std::unique_ptr<HostPrograms> programs_;
  std::map<std::string, std::vector<std::string>> lost_;  // lines of metrics.jsonl by host

 private:
  // Where a fault comes upon another, the rank may not run, or not yet.
  void signal_rank(int rank, const std::string& signal) {
    const bool does = wait_until([&] { return programs_->try_signal_rank(rank, signal); }, 2);
    if (!does) std::printf("[ rank %d does not run ]\n", rank);
  }
  void switch_off(const std::string& host) {
    hosts_->power_off(host);
    off_.insert(host);
  }
  void switch_on(const std::string& host) {
    hosts_->power_on(host);
    off_.erase(host);
    steady(host, unsteady_[host]);
  }

  std::map<std::string, Unsteady> unsteady_;  // by host
  std::set<std::string> off_;
};

}  // namespace lockstep
