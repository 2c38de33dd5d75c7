// Faults in any order, drawn from a seed, done to a training of four ranks on two virtual hosts
// that share nothing (docs/reliability.md#chaos; tests/chaos starts it with a seed). After every
// fault the run goes on from the newest whole checkpoint or a later step; at its end, weights and
// optimizer equal in every bit those of a run to which nothing was done.
#include "support/chaos_faults.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

class Chaos : public ChaosHosts {
 protected:
  // The newest step of a whole checkpoint, 0 without one: on any host that keeps it, or on each
  // where the job goes on with one of them.
  int64_t safe_step(const std::set<std::string>& spoiled = {}) const {
    std::vector<int64_t> newest;
    for (const std::string& host : hosts_->names()) {
      newest.push_back(0);
      if (spoiled.contains(host)) continue;
      for (const fs::path& one : all_checkpoints(checkpoints_of(host))) {
        if (!checkpoint_damage(one).empty()) continue;  // or removed for a newer one meanwhile
        newest.back() = std::max(newest.back(), checkpoint_step(one));
      }
    }
    return training_.goes_on_alone ? std::ranges::min(newest) : std::ranges::max(newest);
  }
  // Lines of a host's metrics.jsonl, behind its first ones. Rank 0 may have been on either.
  std::vector<nlohmann::json> metrics_of_host(const std::string& host,
                                              std::size_t passed_over = 0) {
    const std::vector<std::string>& lost = lost_[host];
    std::vector<nlohmann::json> out;
    for (std::size_t i = passed_over; i < lost.size(); ++i) {
      nlohmann::json json = nlohmann::json::parse(lost[i], nullptr, false);
      if (json.is_object()) out.push_back(json);
    }
    const std::size_t rest = passed_over > lost.size() ? passed_over - lost.size() : 0;
    for (nlohmann::json& line : json_lines(metrics_file(host), rest)) out.push_back(line);
    return out;
  }
  using Marks = std::map<std::string, std::size_t>;  // lines by host
  Marks marks() {
    Marks out;
    for (const std::string& host : hosts_->names()) {
      out[host] = lost_[host].size() + raw_metrics(host).size();
    }
    return out;
  }

  // What is known before a fault begins.
  struct Before {
    Marks marks;
    int attempt = -1;
  };
  // Does the faults, the second `between` seconds after the first; returns what was known before
  // the last one for which the ranks start again, or, where there is none, after all.
  Before work(const std::vector<Fault>& faults, double between) {
    Before out;
    double now = 0;  // seconds since the first began
    const auto wait_for = [&](double then) {
      if (then > now) std::this_thread::sleep_for(std::chrono::duration<double>(then - now));
      now = std::max(now, then);
    };
    std::multimap<double, const Fault*> ends;
    const auto end_until = [&](double then) {
      while (!ends.empty() && ends.begin()->first <= then) {
        wait_for(ends.begin()->first);
        ends.begin()->second->end();
        ends.erase(ends.begin());
      }
    };
    for (std::size_t i = 0; i < faults.size(); ++i) {
      const double then = static_cast<double>(i) * between;
      end_until(then);
      wait_for(then);
      const Before before{marks(), job_->attempt()};
      if (faults[i].restarts || i == 0) out = before;
      faults[i].begin();
      ends.emplace(then + faults[i].lasts, &faults[i]);
    }
    end_until(1e9);
    if (std::ranges::none_of(faults, &Fault::restarts)) out.marks = marks();
    return out;
  }

  // Does one fault, or two of which the second comes while the first one is endured, and waits
  // until the run has gone on. Lines of metrics.jsonl are told by their number, since their times
  // follow a clock that jumps.
  void endure(const std::vector<Fault>& faults, double between, int number) {
    std::string text = faults[0].text;
    std::set<std::string> spoiled = faults[0].spoils;
    if (faults.size() > 1) {
      text += fmt::format("; after {:.1f} s {}", between, faults[1].text);
      spoiled.insert(faults[1].spoils.begin(), faults[1].spoils.end());
    }
    SCOPED_TRACE(fmt::format("{}: {}", number, text));
    const bool restarts = std::ranges::any_of(faults, &Fault::restarts);
    const int64_t safe_before = safe_step(spoiled);
    const Before before = work(faults, between);
    Marks from = before.marks;
    double over = unix_now();
    if (faults.back().ends_job) {
      const int code = job_->launcher().wait(40s);
      ASSERT_NE(code, -1) << "the launcher did not end";
      job_.reset();
      over = unix_now();
      start_job();
    } else if (restarts) {
      ASSERT_TRUE(wait_until([&] { return job_->attempt() > before.attempt; }, 120))
          << "was not noticed";
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
          if (event == "step" && (resumed || !restarts)) ++steps;
        }
        most = std::max(most, steps);
      }
      if (most == 0) next = 0;
      if (most > 0 && next == 0) next = unix_now() - over;
      if (alone) from = marks();  // what counts begins once both hosts are there
      return most > 12 && !alone;
    };
    ASSERT_TRUE(wait_until(gone_on, 120)) << "no step after it";
    if (!restarts && faults.size() == 1) {
      EXPECT_EQ(job_->attempt(), before.attempt) << "was no reason to start again";
    }
    if (first >= 0) {
      EXPECT_GT(first, safe_before) << "a checkpoint was lost";
    }
    std::printf("[ %3d  %-58s next step after %5.1f s%s ]\n", number, text.c_str(), next,
                first >= 0 ? fmt::format(", from step {}", first).c_str() : "");
    std::fflush(stdout);
  }

  fs::path file_of(const std::string& run, int64_t step, const char* name) const {
    return run_on(*hosts_, "a", run) / "checkpoints" / checkpoint_name(step) / name;
  }
};

TEST_F(Chaos, InAnyOrderLosesNoStepBeyondTheNewestCheckpointAndChangesNoBit) {
  const auto faults = static_cast<int>(number_of("LOCKSTEP_CHAOS_FAULTS", 5));
  const double end = unix_now() + 60 * number_of("LOCKSTEP_CHAOS_MINUTES", 600);
  const bool kills = number_of("LOCKSTEP_CHAOS_KILLS", 0) > 0;
  std::printf("[ seed %llu, %s ]\n", static_cast<unsigned long long>(seed_), training_.name);
  std::mt19937_64 random(seed_);
  start_job();
  ASSERT_TRUE(job_->wait_for_steps(15)) << job_->output();
  int done = 0;
  for (; done < faults && unix_now() < end; ++done) {
    std::vector<Fault> drawn = {draw(random, kills)};
    const double between = static_cast<double>(random() % 3000) / 1000;
    if (random() % 3 == 0 && !kills && !drawn[0].ends_job) {
      drawn.push_back(draw_beside(random, drawn[0]));
    }
    endure(drawn, between, done + 1);
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
