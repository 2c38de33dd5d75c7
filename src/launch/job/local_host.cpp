#include "dist/rank/network.h"
#include "launch/job/host_control.h"

namespace lockstep {

namespace {

class LocalHost : public HostControl {
 public:
  LocalHost(EventLoop& loop, HostEvents& events, int host, const SpotOptions& spot)
      : events_(events),
        host_(host),
        ranks_(loop, events, host),
        notices_(loop, spot,
                 {.on_notice = [this](const HostNotice& n) { events_.on_notice(host_, n); },
                  .on_words = [this](const std::string& w) { events_.on_host_words(host_, w); }}) {}

  void prepare(const PrepareOrder&) override { events_.on_prepared(host_, {}); }
  void open_store(const std::string& address) override {
    store_ = Descriptor(listen_on(address, 0));
    events_.on_store_open(host_, port_of(store_.get()));
  }
  // Our copy of the socket closes with the order, so that the store dies with rank 0.
  void start(const StartOrder& order) override { ranks_.start(order, std::move(store_)); }
  void stop(std::chrono::milliseconds grace, bool tell) override { ranks_.stop(grace, tell); }
  void kill() override { ranks_.kill(); }
  void ask(char, const std::string&) override {}
  void leave() override {}
  void collect_ends() override { ranks_.collect_ends(); }
  void check_time(Clock::time_point now) override {
    ranks_.check_time(now);
    notices_.watch(!ranks_.idle());
    notices_.check_time(now);
  }
  std::optional<Clock::time_point> next_deadline() const override {
    return earlier(ranks_.next_deadline(), notices_.next_deadline());
  }

 private:
  HostEvents& events_;
  int host_;
  RankSet ranks_;  // first, as its orphan killer must inherit nothing of the rest
  NoticeWatch notices_;
  Descriptor store_;
};

}  // namespace

std::unique_ptr<HostControl> make_local_host(EventLoop& loop, HostEvents& events, int host,
                                             const SpotOptions& spot) {
  return std::make_unique<LocalHost>(loop, events, host, spot);
}

}  // namespace lockstep
