// Faults in any order, drawn from a seed, done to a training of four ranks on two virtual hosts
// that share nothing (docs/reliability.md#chaos; tests/chaos starts it with a seed). After every
// fault the run goes on from the newest whole checkpoint or a later step; at its end, weights and
// optimizer equal in every bit those of a run to which nothing was done.
#include <signal.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/error.h"
#include "support/chaos_parts.h"
#include "support/faults.h"
#include "support/tiny_images.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

class Chaos : public ApartRuns {
 protected:
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
    if (HasFailure() && job_) std::printf("%s\n", job_->output().c_str());
    job_.reset();  // before its hosts
    hosts_.reset();
  }

  struct Fault {
    std::string text;       // "kill -9 of rank 2"
    bool kills = false;     // a process, and nothing else
    bool restarts = true;   // the ranks start again; false: nothing may happen
    bool ends_job = false;  // the launcher ends, and is started again with --resume
    std::function<void()> work;
  };

  void begin() {
    job_ = std::make_unique<Job>(
        *hosts_, desk(), "run",
        JobOptions{.launch = fmt::format("--host-poll 0.5 --interface eth0 {}",
                                         training_.goes_on_alone ? "--host-timeout 3 --min-hosts 1"
                                                                 : "--host-timeout 60"),
                   .train = fmt::format("checkpoint.keep=3 training.check_weights_every=10 "
                                        "--resume=auto {}",
                                        training_.words),
                   .config = training_.config,
                   .environment = {"LD_PRELOAD=" LOCKSTEP_UNSTEADY_MACHINE,
                                   "LOCKSTEP_UNSTEADY=" + desk_state().string()}});
  }

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
    const std::string file = host == "control" ? desk_state().string() : "/etc/lockstep-unsteady";
    const auto [code, said] =  // in place: processes have it mapped
        hosts_->run(host, fmt::format("printf '%s' '{}' 1<>{}", text, file));
    ASSERT_EQ(code, 0) << said;
  }

  // --- what can happen

  Fault signal_to_rank(const std::string& signal, int rank) {
    return {.text = fmt::format("kill -{} of rank {}", signal, rank),
            .kills = true,
            .work = [=, this] { job_->signal_rank(rank, signal); }};
  }
  Fault kill_agent(const std::string& host) {
    return {.text = "kill -9 of the agent on " + host, .kills = true, .work = [=, this] {
              for (int process : job_->processes_in(host, " agent ")) {
                hosts_->run(host, fmt::format("kill -9 {}", process));
              }
            }};
  }
  Fault kill_launcher(int signal) {
    return {.text = fmt::format("signal {} to the launcher", signal),
            .kills = true,
            .ends_job = true,
            .work = [=, this] { job_->launcher().signal(signal); }};
  }
  Fault reclaim(int rank) {
    return {.text = fmt::format("SIGTERM to rank {}: its machine is reclaimed", rank),
            .kills = true,
            .ends_job = true,
            .work = [=, this] { job_->signal_rank(rank, "TERM"); }};
  }
  Fault pause_rank(int rank, double seconds) {
    return {.text = fmt::format("rank {} stands still for {:.1f} s", rank, seconds),
            .restarts = false,
            .work = [=, this] {
              job_->signal_rank(rank, "STOP");
              std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
              job_->signal_rank(rank, "CONT");
            }};
  }
  Fault cut(const std::string& host, double seconds, bool one_way) {
    return {
        .text = fmt::format("{} cut {} for {:.1f} s", host, one_way ? "one way" : "off", seconds),
        .restarts = seconds > 5,
        .work = [=, this] {
          if (one_way) {
            hosts_->cut_outgoing(host, seconds);
          } else {
            hosts_->cut(host, seconds);
          }
          std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        }};
  }
  Fault slow_link(double seconds, double delay_ms) {
    return {.text = fmt::format("{:.0f} ms of delay for {:.1f} s", delay_ms, seconds),
            .restarts = false,
            .work = [=, this] {
              LabEvent event;
              event.action = "set";
              event.hosts = {"a"};
              event.delay_ms = delay_ms;
              event.lasts = seconds;
              hosts_->lab().apply(event);
              std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
            }};
  }
  Fault power(const std::string& host, double seconds) {
    return {.text = fmt::format("power of {} off for {:.1f} s", host, seconds), .work = [=, this] {
              hosts_->power_off(host);
              std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
              hosts_->power_on(host);
            }};
  }
  // A file of the newest checkpoint changes on some hosts, and then a rank is killed.
  Fault damage(const std::set<std::string>& hosts, bool cuts_short, int rank) {
    return {.text = fmt::format("the newest checkpoint of {} {}, kill -9 of rank {}",
                                fmt::join(hosts, " and "),
                                cuts_short ? "cut short" : "with a flipped bit", rank),
            .work = [=, this] {
              // Between two checkpoints, so that the one that is damaged is not written any more.
              job_->signal_rank(rank, "STOP");
              std::this_thread::sleep_for(300ms);
              for (const std::string& host : hosts) damage_newest(checkpoints_of(host), cuts_short);
              job_->signal_rank(rank, "KILL");
            }};
  }
  // No file of a host's ranks may grow beyond a kilobyte, as with a quota that is used up: the next
  // checkpoint ends the one that keeps them.
  Fault full_disk(const std::string& host) {
    return {.text = "no room for files on " + host, .work = [=, this] {
              const auto [code, text] = hosts_->run_as_user(
                  host, fmt::format("done=1; for p in {}; do prlimit --fsize=1000:1000 --pid $p && "
                                    "done=0; done; exit $done",  // one may have ended the others
                                    fmt::join(job_->processes_in(host, " train "), " ")));
              ASSERT_EQ(code, 0) << text;
            }};
  }

  Fault clock(const std::string& host, int64_t seconds) {
    return {.text = fmt::format("the clock of {} jumps to {:+} s",
                                host == "control" ? "the launcher's machine" : host, seconds),
            .restarts = false,
            .work = [=, this] {
              steady(host, {seconds, unsteady_[host].disk_milliseconds});
              if (host == "control") return;
              const double there = std::atof(hosts_->run(host, "date +%s").second.c_str());
              ASSERT_NEAR(there - unix_now(), static_cast<double>(seconds), 5);
            }};
  }
  Fault slow_disk(const std::string& host, double seconds) {
    return {.text = fmt::format("each change of a file takes {} 20 ms for {:.1f} s", host, seconds),
            .restarts = false,
            .work = [=, this] {
              steady(host, {unsteady_[host].clock_seconds, 20});
              const double start = unix_now();
              hosts_->run(host, "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; done >/root/written");
              ASSERT_GT(unix_now() - start, 0.2);
              std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
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
    switch (below(kills_alone ? 6 : 19)) {
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
      default:
        return slow_disk(host, seconds(2, 5));
    }
  }

  // --- what must hold

  fs::path checkpoints_of(const std::string& host) const {
    return run_on(*hosts_, host, "run") / "checkpoints";
  }
  // The newest step of a whole checkpoint, 0 without one: on any host, or on each where the job
  // goes on with one of them.
  int64_t safe_step() const {
    std::vector<int64_t> newest;
    for (const std::string& host : hosts_->names()) {
      newest.push_back(0);
      for (const fs::path& one : all_checkpoints(checkpoints_of(host))) {
        try {
          if (!checkpoint_damage(one).empty()) continue;
          newest.back() = std::max(newest.back(), checkpoint_step(one));
        } catch (const fs::filesystem_error&) {
          // It was removed for a newer one meanwhile, which counts then.
        }
      }
    }
    return training_.goes_on_alone ? std::ranges::min(newest) : std::ranges::max(newest);
  }
  // Lines of a host's metrics.jsonl, behind its first ones. Rank 0 may have been on either.
  std::vector<nlohmann::json> metrics_of_host(const std::string& host,
                                              std::size_t passed_over = 0) const {
    return json_lines(run_on(*hosts_, host, "run") / "metrics.jsonl", passed_over);
  }
  using Marks = std::map<std::string, std::size_t>;  // lines by host
  Marks marks() const {
    Marks out;
    for (const std::string& host : hosts_->names()) out[host] = metrics_of_host(host).size();
    return out;
  }
  // Does one fault and waits until the run has gone on. Lines of metrics.jsonl are told by their
  // number, since their times follow a clock that jumps.
  void endure(const Fault& fault, int number) {
    const Marks before = marks();
    const int attempt = job_->attempt();
    const bool damages = fault.text.find("checkpoint") != std::string::npos;
    const int64_t safe_before = damages ? 0 : safe_step();
    fault.work();
    Marks from = fault.restarts ? before : marks();
    double over = unix_now();
    if (fault.ends_job) {
      const int code = job_->launcher().wait(40s);
      ASSERT_NE(code, -1) << number << ": " << fault.text << ": the launcher did not end";
      job_.reset();
      over = unix_now();
      begin();
    } else if (fault.restarts) {
      const auto again = [&] { return job_->attempt() > attempt; };
      ASSERT_TRUE(wait_until(again, 120)) << number << ": " << fault.text << ": was not noticed";
    }
    // New steps, and so a checkpoint: of the last start after the fault, where it is one for it.
    int64_t first = -1;
    double next = 0;
    const auto gone_on = [&] {
      int most = 0;
      const bool alone = job_->ranks() != 4;
      for (const std::string& host : hosts_->names()) {
        int steps = 0;
        bool resumed = false;
        for (const nlohmann::json& line : metrics_of_host(host, from[host])) {
          const std::string event = line.value("event", "");
          if (event == "resume") {
            first = line.value("first_step", int64_t{-1});
            resumed = true;
            steps = 0;
          }
          if (event == "step" && (resumed || !fault.restarts)) ++steps;
        }
        most = std::max(most, steps);
      }
      if (most == 0) next = 0;
      if (most > 0 && next == 0) next = unix_now() - over;
      if (alone) from = marks();  // what counts begins once both hosts are there
      return most > 12 && !alone;
    };
    ASSERT_TRUE(wait_until(gone_on, 120)) << number << ": " << fault.text << ": no step after it";
    if (!fault.restarts) {
      EXPECT_EQ(job_->attempt(), attempt)
          << number << ": " << fault.text << ": was no reason to start again";
    }
    if (first >= 0) {
      EXPECT_GT(first, safe_before) << number << ": " << fault.text << ": a checkpoint was lost";
    }
    std::printf("[ %3d  %-58s next step after %5.1f s%s ]\n", number, fault.text.c_str(), next,
                first >= 0 ? fmt::format(", from step {}", first).c_str() : "");
    std::fflush(stdout);
  }

  fs::path file_of(const std::string& run, int64_t step, const char* name) const {
    return run_on(*hosts_, "a", run) / "checkpoints" / checkpoint_name(step) / name;
  }
  const uint64_t seed_ = static_cast<uint64_t>(number_of("LOCKSTEP_CHAOS_SEED", 1));
  const Training& training_ = training_of(seed_);
  std::unique_ptr<HostsApart> hosts_;
  std::unique_ptr<Job> job_;
  std::map<std::string, Unsteady> unsteady_;  // by host
};

TEST_F(Chaos, InAnyOrderLosesNoStepBeyondTheNewestCheckpointAndChangesNoBit) {
  const auto faults = static_cast<int>(number_of("LOCKSTEP_CHAOS_FAULTS", 5));
  const double end = unix_now() + 60 * number_of("LOCKSTEP_CHAOS_MINUTES", 600);
  const bool kills = number_of("LOCKSTEP_CHAOS_KILLS", 0) > 0;
  std::printf("[ seed %llu, %s ]\n", static_cast<unsigned long long>(seed_), training_.name);
  std::mt19937_64 random(seed_);
  begin();
  ASSERT_TRUE(job_->wait_for_steps(15)) << job_->output();
  int done = 0;
  for (; done < faults && unix_now() < end; ++done) {
    endure(draw(random, kills), done + 1);
    if (HasFailure()) return;
  }
  job_->launcher().signal(SIGTERM);
  ASSERT_EQ(job_->launcher().wait(40s), 143) << job_->output();
  const int64_t last = safe_step();

  std::set<int64_t> steps;
  for (const std::string& host : hosts_->names()) {
    std::vector<int64_t> counting;  // a step that was taken again is that of its last line
    for (const nlohmann::json& line : metrics_of_host(host)) {
      if (line.value("event", "") != "step") continue;
      const int64_t step = line.value("step", int64_t{0});
      while (!counting.empty() && counting.back() >= step) counting.pop_back();
      counting.push_back(step);
    }
    steps.insert(counting.begin(), counting.end());
  }
  ASSERT_EQ(static_cast<int64_t>(steps.size()), last);
  EXPECT_EQ(*steps.begin(), 1);
  EXPECT_EQ(*steps.rbegin(), last);

  const double start = unix_now();
  Job undisturbed(
      *hosts_, desk(), "undisturbed",
      {.launch = "--interface eth0",
       .train = fmt::format("training.steps={} checkpoint.every=0 {}", last, training_.words),
       .config = training_.config});
  ASSERT_EQ(undisturbed.launcher().wait(30min), 0) << undisturbed.output();
  for (const char* file : {"weights.safetensors", "optimizer.safetensors"}) {
    EXPECT_EQ(differences(file_of("run", last, file), file_of("undisturbed", last, file)), "")
        << file;
  }
  std::printf("[ seed %llu: %d faults, %lld steps; undisturbed in %.0f s ]\n",
              static_cast<unsigned long long>(seed_), done, static_cast<long long>(last),
              unix_now() - start);
}

}  // namespace
}  // namespace lockstep
