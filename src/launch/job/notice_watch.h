// Asks the cloud's metadata server every few seconds, while ranks run, whether this machine is
// about to be taken away, and tells what it says. On the event loop: nothing here waits. A server
// that fails is mentioned once and asked less often; no answer never stops anything.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launch/job/loop_request.h"
#include "launch/job/spot_notice.h"
#include "launch/processes/event_loop.h"

namespace lockstep {

struct SpotOptions {
  std::string cloud = "auto";  // --spot: auto, no, aws, google, azure
  std::string metadata;        // LOCKSTEP_METADATA, "http://127.0.0.1:8080"; empty: the cloud's own
};

class NoticeWatch {
 public:
  struct Listener {
    std::function<void(const HostNotice&)> on_notice;
    std::function<void(const std::string&)> on_words;  // for a person
  };
  // Throws ConfigError for an unknown cloud.
  NoticeWatch(EventLoop& loop, const SpotOptions& options, Listener listener);

  void watch(bool ranks_run);
  void check_time(Clock::time_point now);
  std::optional<Clock::time_point> next_deadline() const;

 private:
  void ask();
  void ask_aws();
  void ask_azure();
  void ask_for(const LoopQuestion& question,
               const std::function<NoticeAnswer(const HttpAnswer&, double)>& read);
  void take(const NoticeAnswer& answer, double now);
  void fail(const std::string& why);

  Listener listener_;
  Cloud cloud_ = Cloud::kNone;
  std::string base_;
  std::chrono::milliseconds pause_, longer_;
  std::unique_ptr<LoopRequest> request_;  // none where there is no cloud
  bool watching_ = false, complained_ = false;
  Clock::time_point next_{}, token_until_{};
  std::string token_, name_;
  bool named_ = false;
  std::optional<SpotNotice> notice_;  // that was told and not withdrawn
};

}  // namespace lockstep
