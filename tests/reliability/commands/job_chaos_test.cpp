// Faults in any order, drawn from a seed, done to a job that nobody's machine holds
// (docs/launch.md#jobs-that-go-on-without-you): its launcher is on one of two virtual hosts that
// share nothing, and is lost with it. Somebody resumes the job where it stands still, or too early,
// while the older launcher lives on a host that is cut off. The run must go on from the newest
// checkpoint, and end like one to which nothing was done (docs/reliability.md#chaos).
#include <nlohmann/json.hpp>

#include "launch/jobs/job_record.h"
#include "support/chaos_runs.h"
#include "support/expect_says.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

// What is trained may lose ranks, and is the same with any number of them.
const Training& elastic() { return *std::ranges::find(kTrainings, true, &Training::goes_on_alone); }

class JobChaos : public ChaosRuns {
 protected:
  JobChaos() : ChaosRuns(&elastic()) {}

  void end_job() override {
    if (!HasFailure() || id_.empty()) return;
    std::printf("%s\n", control("jobs").second.c_str());
    for (const std::string& host : hosts_->names()) {
      std::printf("--- %s\n%s\n", host.c_str(),
                  hosts_
                      ->run_as_user(host,
                                    "cd ~/.lockstep/jobs && for f in */out */err */job.json; do "
                                    "echo \"- $f\"; tail -n 60 $f; done")
                      .second.c_str());
    }
  }
  void signal_launcher(int signal) override {
    for (const std::string& host : hosts_->names()) {
      try {
        hosts_->run(host, fmt::format("pkill -{} -f '[l]aunch --job'", signal));
      } catch (const MachineError&) {
        // It is off, and its launcher with it.
      }
    }
  }

  // Starts lockstep on the machine of whoever looks after the job.
  std::unique_ptr<HostProgram> start(const std::string& words) {
    const std::string shell =
        fmt::format("cd '{}' && HOME='{}' OMP_NUM_THREADS=1 exec '{}' {}", desk().string(),
                    home_.path().string(), LOCKSTEP_PROGRAM, words);
    return hosts_->start("control", {"/bin/sh", "-c", shell});
  }
  std::pair<int, std::string> control(const std::string& words) {
    const auto program = start(words);
    const int code = program->wait(180s);
    return {code, program->output()};
  }
  std::string resume_words() const { return "resume --min-hosts 1 " + id_; }
  Fault resume() {
    return {.text = "it is resumed",
            .begin = [this] { resumes_.push_back(start(resume_words())); }};
  }

  // What the newest launcher has started: how often, and how many ranks at last.
  struct Started {
    int term = 0, times = 0, ranks = 0;
    bool operator==(const Started&) const = default;
  };
  Started started() const {
    Started out;
    std::string launcher;
    for (const std::string& host : hosts_->names()) {
      const fs::path file = hosts_->file(host, ".lockstep/jobs/" + id_ + "/job.json");
      if (!fs::exists(file)) continue;
      const JobRecord record = job_record_of(read_file(file), host);
      if (record.term <= out.term) continue;
      out.term = record.term;
      launcher = record.launcher;
    }
    for (const auto& line : json_lines(run_on(*hosts_, launcher, "run") / "launch.jsonl")) {
      if (line.value("event", "") != "start") continue;
      ++out.times;
      out.ranks = line.value("ranks", 0);
    }
    return out;
  }

  // Waits until all four ranks have taken steps; resumes the job where it stands still.
  void wait_for_all(int& resumed) {
    Marks from = marks();
    bool alone = false;
    double tried = unix_now();
    const auto gone_on = [&] {
      if (started().ranks != 4) {
        from = marks();
        alone = true;  // they start again once the other host is there
      }
      if (progress(from, alone).steps > 12) return true;
      if (unix_now() - tried > 12) {
        const auto [code, text] = control(resume_words());  // refused where it runs
        resumed += code == 0 ? 1 : 0;
        said_ = text;
        tried = unix_now();
      }
      return false;
    };
    ASSERT_TRUE(wait_until(gone_on, 150)) << "no step after it; resume: " << said_;
  }
  void endure(const std::vector<Fault>& faults, double between, int number) {
    const std::string text = text_of(faults, between);
    SCOPED_TRACE(fmt::format("{}: {}", number, text));
    const bool nothing_may_happen = faults.size() == 1 && !faults[0].restarts;
    if (nothing_may_happen) std::this_thread::sleep_for(7s);  // what happened before is over
    const int64_t safe_before = safe_step(spoiled_by(faults));
    Marks before = marks();
    const Started started_before = started();
    work(faults, between, [](const Fault&) {});
    const double over = unix_now();
    for (auto& program : resumes_) ASSERT_NE(program->wait(90s), -1) << program->output();
    resumes_.clear();
    int resumed = 0;
    wait_for_all(resumed);
    if (HasFailure()) return;
    if (nothing_may_happen) {
      EXPECT_EQ(started(), started_before) << "was no reason to start again";
    }
    const int64_t first = progress(before, false).first_step;
    if (first >= 0) {
      EXPECT_GT(first, safe_before) << "a checkpoint was lost";
    }
    std::printf("[ %3d  %-58s all train after %5.1f s%s%s ]\n", number, text.c_str(),
                unix_now() - over, resumed > 0 ? ", resumed" : "",
                first >= 0 ? fmt::format(", from step {}", first).c_str() : "");
    std::fflush(stdout);
  }

  TemporaryFolder home_;  // of whoever looks after the job
  std::string id_, said_;
  std::vector<std::unique_ptr<HostProgram>> resumes_;
};

TEST_F(JobChaos, GoesOnWhateverIsLostAndChangesNoBit) {
  const auto faults = static_cast<int>(number_of("LOCKSTEP_CHAOS_FAULTS", 2));
  const double end = unix_now() + 60 * number_of("LOCKSTEP_CHAOS_MINUTES", 600);
  std::printf("[ seed %llu, a job ]\n", static_cast<unsigned long long>(seed_));
  std::mt19937_64 random(seed_);
  const auto [code, said] = control(fmt::format(
      "launch --detach --cwd '~/work' -H a:2,b:2 --interface eth0 --host-poll 0.5 --host-timeout 3 "
      "--min-hosts 1 -- train {} run.folder=run training.steps=1000000 checkpoint.every=10 "
      "checkpoint.keep=3 training.check_weights_every=10 {}",
      training_.config, training_.words));
  ASSERT_EQ(code, 0) << said;
  const std::size_t at = said.find("lockstep attach ");
  ASSERT_NE(at, std::string::npos) << said;
  id_ = said.substr(at + 16, said.find(' ', at + 16) - at - 16);
  int done = 0, resumed = 0;
  for (; done < faults && unix_now() < end; ++done) {
    std::vector<Fault> drawn = {draw(random, false)};
    const double between = static_cast<double>(random() % 3000) / 1000;
    const uint64_t what = random() % 3;
    if (what == 0 && !is_one_kind()) drawn.push_back(draw_beside(random, drawn[0]));
    if (what == 1) drawn.push_back(resume());
    endure(drawn, between, done + 1);
    if (HasFailure()) return;
  }
  std::this_thread::sleep_for(8s);  // a loss of just now is noticed
  wait_for_all(resumed);
  const auto [stopped, last_words] = control("stop " + id_);
  ASSERT_EQ(stopped, 0) << last_words;
  expect_says(last_words, "has ended with exit code 143");
  for (const std::string& host : hosts_->names()) {
    const auto none = [&] { return programs_->processes_in(host).empty(); };
    EXPECT_TRUE(wait_until(none, 10)) << host;
  }
  const int64_t last = safe_step();
  expect_undisturbed(last);
  std::printf("[ seed %llu: %d faults, %lld steps ]\n", static_cast<unsigned long long>(seed_),
              done, static_cast<long long>(last));
}

}  // namespace
}  // namespace lockstep
