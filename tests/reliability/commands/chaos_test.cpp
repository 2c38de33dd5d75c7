// Faults in any order, drawn from a seed, done to a training of four ranks on two virtual hosts
// that share nothing (docs/reliability.md#chaos; tests/chaos starts it with a seed). After every
// fault the run goes on from the newest whole checkpoint or a later step; at its end, weights and
// optimizer equal in every bit those of a run to which nothing was done.
#include "support/chaos_runs.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

class Chaos : public ChaosRuns {
 protected:
  void start_job() {
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
  void end_job() override {
    if (HasFailure() && job_) std::printf("%s\n", job_->output().c_str());
    job_.reset();
  }
  void signal_launcher(int signal) override { job_->launcher().signal(signal); }

  // Does one fault, or two of which the second comes while the first one is endured, and waits
  // until the run has gone on.
  void endure(const std::vector<Fault>& faults, double between, int number) {
    const std::string text = text_of(faults, between);
    SCOPED_TRACE(fmt::format("{}: {}", number, text));
    const bool restarts = std::ranges::any_of(faults, &Fault::restarts);
    const int64_t safe_before = safe_step(spoiled_by(faults));
    // As they are before the last fault for which the ranks start again, or after all.
    Marks from;
    int attempt = job_->attempt();
    work(faults, between, [&](const Fault& fault) {
      if (!fault.restarts) return;
      from = marks();
      attempt = job_->attempt();
    });
    if (!restarts) from = marks();
    double over = unix_now();
    bool resumed = restarts;
    if (faults.back().ends_job) {
      const int code = job_->launcher().wait(40s);
      ASSERT_NE(code, -1) << "the launcher did not end";
      job_.reset();
      over = unix_now();
      start_job();
    } else if (restarts) {
      // A second fault may come while the ranks start, and be over before they miss anything.
      const auto outlasted = [&] {
        return faults.size() > 1 && unix_now() > over + 15 && progress(from, false).steps > 12;
      };
      ASSERT_TRUE(wait_until([&] { return job_->attempt() > attempt || outlasted(); }, 120))
          << "was not noticed";
      resumed = job_->attempt() > attempt;
    }
    // New steps, and so a checkpoint: of the last start after the fault, where it is one for it.
    int64_t first = -1;
    double next = 0;
    const auto gone_on = [&] {
      const bool now_alone = job_->ranks() != 4;
      const Progress now = progress(from, resumed);
      if (now.first_step >= 0) first = now.first_step;
      if (now.steps == 0) next = 0;
      if (now.steps > 0 && next == 0) next = unix_now() - over;
      if (now_alone) {  // what counts begins once both hosts are there
        from = marks();
        resumed = true;
      }
      return now.steps > 12 && !now_alone;
    };
    ASSERT_TRUE(wait_until(gone_on, 120)) << "no step after it";
    if (faults.size() > 1) {  // the second one may end what the first one started
      std::this_thread::sleep_for(1s);
      from = marks();
      resumed = false;
      ASSERT_TRUE(wait_until(gone_on, 120)) << "no step after the second";
    }
    if (!restarts && faults.size() == 1) {
      EXPECT_EQ(job_->attempt(), attempt) << "was no reason to start again";
    }
    if (first >= 0) {
      EXPECT_GT(first, safe_before) << "a checkpoint was lost";
    }
    std::printf("[ %3d  %-58s next step after %5.1f s%s ]\n", number, text.c_str(), next,
                first >= 0 ? fmt::format(", from step {}", first).c_str() : "");
    std::fflush(stdout);
  }

  std::unique_ptr<Job> job_;
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
    if (random() % 3 == 0 && !kills && !is_one_kind() && !drawn[0].ends_job) {
      drawn.push_back(draw_beside(random, drawn[0]));
    }
    endure(drawn, between, done + 1);
    if (HasFailure()) return;
  }
  job_->launcher().signal(SIGTERM);
  ASSERT_EQ(job_->launcher().wait(40s), 143) << job_->output();
  const int64_t last = safe_step();
  const double start = unix_now();
  expect_undisturbed(last);
  std::printf("[ seed %llu: %d faults, %lld steps; undisturbed in %.0f s ]\n",
              static_cast<unsigned long long>(seed_), done, static_cast<long long>(last),
              unix_now() - start);
}

}  // namespace
}  // namespace lockstep
