#include "launch/job/notice_watch.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

using std::chrono::milliseconds;

constexpr const char* kLinkLocal = "http://169.254.169.254";
// AWS and Azure advise five seconds and one; a stand-in on loopback takes more.
constexpr milliseconds kPause{5000}, kStandInPause{500}, kLongest{60000};
constexpr std::chrono::hours kTokenLife{5};  // of the six that are asked for

}  // namespace

NoticeWatch::NoticeWatch(EventLoop& loop, const SpotOptions& options, Listener listener)
    : listener_(std::move(listener)),
      cloud_(options.cloud == "auto" ? cloud_of(read_machine_labels())
                                     : cloud_of_name(options.cloud)),
      base_(options.metadata.empty() ? kLinkLocal : options.metadata),
      pause_(options.metadata.empty() ? kPause : kStandInPause),
      longer_(pause_) {
  while (base_.ends_with('/')) base_.pop_back();
  if (cloud_ != Cloud::kNone) request_ = std::make_unique<LoopRequest>(loop);
}

void NoticeWatch::watch(bool ranks_run) {
  if (!request_ || ranks_run == watching_) return;
  watching_ = ranks_run;
  next_ = Clock::now();
  if (!watching_) request_->stop();
}

void NoticeWatch::check_time(Clock::time_point now) {
  if (!watching_) return;
  request_->check_time(now);
  if (!request_->busy() && now >= next_) ask();
}

std::optional<Clock::time_point> NoticeWatch::next_deadline() const {
  if (!watching_) return std::nullopt;
  return request_->busy() ? request_->next_deadline() : std::optional(next_);
}

void NoticeWatch::ask() {
  if (cloud_ == Cloud::kAws) return ask_aws();
  if (cloud_ == Cloud::kAzure) return ask_azure();
  ask_for({.url = base_ + "/computeMetadata/v1/instance/preempted",
           .headers = {"Metadata-Flavor: Google"}},
          read_google_notice);
}

void NoticeWatch::ask_aws() {
  if (!token_.empty() && Clock::now() < token_until_) {
    return ask_for({.url = base_ + "/latest/meta-data/spot/instance-action",
                    .headers = {"X-aws-ec2-metadata-token: " + token_}},
                   read_aws_notice);
  }
  request_->ask({.url = base_ + "/latest/api/token",
                 .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"},
                 .put = true},
                [this](const HttpAnswer& answer, const std::string& failure) {
                  token_ = trim(answer.body);
                  const bool plain = std::all_of(token_.begin(), token_.end(), [](unsigned char c) {
                    return c > ' ' && c < 127;
                  });
                  if (!failure.empty()) return fail(failure);
                  if (answer.status != 200 || token_.empty() || !plain) {
                    token_.clear();
                    return fail(fmt::format("api/token answered {}", answer.status));
                  }
                  token_until_ = Clock::now() + kTokenLife;
                  ask_aws();
                });
}

void NoticeWatch::ask_azure() {
  const std::vector<std::string> headers = {"Metadata: true"};
  if (named_) {
    return ask_for(
        {.url = base_ + "/metadata/scheduledevents?api-version=2020-07-01", .headers = headers},
        [this](const HttpAnswer& answer, double now) {
          return read_azure_notice(answer, name_, now);
        });
  }
  request_->ask(
      {.url = base_ + "/metadata/instance/compute/name?api-version=2021-02-01&format=text",
       .headers = headers},
      [this](const HttpAnswer& answer, const std::string& failure) {
        if (!failure.empty()) return fail(failure);
        named_ = true;
        if (answer.status == 200) name_ = trim(answer.body);
        ask_azure();
      });
}

void NoticeWatch::ask_for(const LoopQuestion& question,
                          const std::function<NoticeAnswer(const HttpAnswer&, double)>& read) {
  request_->ask(question, [this, read](const HttpAnswer& answer, const std::string& failure) {
    if (!failure.empty()) return fail(failure);
    if (answer.status == 401) token_.clear();  // it has expired
    const double now = unix_seconds();
    const NoticeAnswer found = read(answer, now);
    if (!found.trouble.empty()) return fail(found.trouble);
    longer_ = pause_;
    next_ = Clock::now() + pause_;
    take(found, now);
  });
}

void NoticeWatch::take(const NoticeAnswer& answer, double now) {
  if (answer.notice && !notice_) {
    notice_ = answer.notice;
    listener_.on_notice({.cloud = name_of(cloud_),
                         .action = notice_->action,
                         .deadline = notice_->deadline,
                         .seconds_left = std::max(0.0, notice_->deadline - now)});
  } else if (!answer.notice && notice_) {
    const SpotNotice old = *std::exchange(notice_, std::nullopt);
    listener_.on_notice({.cloud = name_of(cloud_),
                         .action = old.action,
                         .deadline = old.deadline,
                         .withdrawn = true});
  }
}

void NoticeWatch::fail(const std::string& why) {
  next_ = Clock::now() + longer_;
  longer_ = std::min(longer_ * 2, kLongest);
  if (std::exchange(complained_, true)) return;
  listener_.on_words(
      fmt::format("the notices of this machine's cloud ({}) cannot be read: {}; ranks stop when "
                  "they are told to",
                  name_of(cloud_), why));
}

}  // namespace lockstep
