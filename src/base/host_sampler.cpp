#include "base/host_sampler.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"

namespace lockstep {
namespace {

double cpu_seconds_of_this_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Returns the figures that need no second sample: all except rates.
HostFigures figures_without_rates(HostUsageOptions options) {
  options.machine = false;
  HostFigures out = HostUsage(std::move(options)).sample();
  out.samples = 0;
  out.seconds = out.process_cores = out.machine_share = 0;
  out.in_bytes_per_second = out.out_bytes_per_second = out.retransmits_per_second = 0;
  out.read_bytes_per_second = out.written_bytes_per_second = 0;
  return out;
}

}  // namespace

struct HostSampler::State {
  std::mutex mutex;  // guards the members below; never held while a sample is taken
  std::condition_variable changed;
  HostSample newest;
  bool stopping = false, ended = false;
  std::thread thread;

  // Runs until stopped and throws nothing: training does not depend on these figures.
  void run(HostUsageOptions options, std::chrono::milliseconds every) {
    try {
      sample_until_stopped(std::move(options), every);
    } catch (const std::exception& error) {
      log_warning("no more figures of this host's use: {}", error.what());
    }
    std::scoped_lock lock(mutex);
    ended = true;
    changed.notify_all();
  }

  void sample_until_stopped(HostUsageOptions options, std::chrono::milliseconds every) {
    using Clock = std::chrono::steady_clock;
    HostUsage usage(std::move(options));
    double cpu_before = cpu_seconds_of_this_thread();
    Clock::time_point due = Clock::now() + every / 10;
    for (;;) {
      {
        std::unique_lock lock(mutex);
        if (changed.wait_until(lock, due, [this] { return stopping; })) return;
      }
      HostSample sample;
      sample.process = usage.sample();
      sample.machine = usage.machine();
      const double cpu_now = cpu_seconds_of_this_thread();
      sample.machine.sampler_share = (cpu_now - cpu_before) / sample.process.seconds;
      cpu_before = cpu_now;
      std::scoped_lock lock(mutex);
      newest = sample;
      due = std::max(due + every, Clock::now());  // missed samples are not made up for
    }
  }
};

HostSampler::HostSampler(HostUsageOptions options, std::chrono::milliseconds every)
    : state_(std::make_shared<State>()) {
  state_->newest.process = figures_without_rates(options);
  // The program's own thread handles signals: the new thread inherits a mask that blocks them all.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  state_->thread = std::thread([state = state_, options = std::move(options), every]() mutable {
    state->run(std::move(options), every);
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

HostSampler::~HostSampler() {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
  constexpr std::chrono::seconds kPatience{2};
  const bool ended = state_->changed.wait_for(lock, kPatience, [this] { return state_->ended; });
  std::thread thread = std::move(state_->thread);
  lock.unlock();
  if (ended) {
    thread.join();
  } else {
    thread.detach();
  }
}

HostSample HostSampler::newest() const {
  std::scoped_lock lock(state_->mutex);
  return state_->newest;
}

}  // namespace lockstep
