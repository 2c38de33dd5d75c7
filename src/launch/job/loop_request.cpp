#include "launch/job/loop_request.h"

#include <curl/curl.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/error.h"

namespace lockstep {

namespace {

constexpr long kConnectMilliseconds = 1000, kMostMilliseconds = 2000;
constexpr std::size_t kMostBytes = 65536;  // of an answer

curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

std::size_t take_bytes(char* data, std::size_t, std::size_t size, void* to) {
  auto& body = *static_cast<std::string*>(to);
  if (body.size() + size > kMostBytes) return 0;  // ends the transfer
  body.append(data, size);
  return size;
}

}  // namespace

struct LoopRequest::State {
  explicit State(EventLoop& on) : loop(on) {
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    multi = curl_multi_init();
    if (ready != CURLE_OK || multi == nullptr) throw MachineError("libcurl cannot be started");
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, &State::on_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, &State::on_timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, this);
  }

  static int on_socket(CURL*, curl_socket_t socket, int what, void* to, void*) {
    auto& self = *static_cast<State*>(to);
    if (what == CURL_POLL_REMOVE) {
      self.loop.forget(socket);
      return 0;
    }
    const int events = (what != CURL_POLL_OUT ? POLLIN : 0) | (what != CURL_POLL_IN ? POLLOUT : 0);
    self.loop.watch(socket, static_cast<short>(events), [&self, socket] { self.go_on(socket); });
    return 0;
  }
  static int on_timer(CURLM*, long milliseconds, void* to) {
    auto& self = *static_cast<State*>(to);
    self.timer.reset();
    if (milliseconds >= 0) self.timer = Clock::now() + std::chrono::milliseconds(milliseconds);
    return 0;
  }

  void go_on(curl_socket_t socket) {
    int running = 0;
    curl_multi_socket_action(multi, socket, 0, &running);
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE || easy == nullptr) continue;
      const CURLcode code = message->data.result;
      HttpAnswer answer{.status = 0, .body = ""};
      long status = 0;
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
      answer.status = static_cast<int>(status);
      answer.body = std::move(body);
      Done told = std::move(done);
      clear();
      told(answer, code == CURLE_OK ? "" : curl_easy_strerror(code));
      return;
    }
  }

  void clear() {
    if (easy != nullptr) {
      curl_multi_remove_handle(multi, easy);
      curl_easy_cleanup(easy);
    }
    curl_slist_free_all(lines);
    easy = nullptr;
    lines = nullptr;
    done = nullptr;
    body.clear();
  }

  EventLoop& loop;
  CURLM* multi = nullptr;
  CURL* easy = nullptr;
  curl_slist* lines = nullptr;
  std::string body;
  Done done;
  std::optional<Clock::time_point> timer;
};

LoopRequest::LoopRequest(EventLoop& loop) : state_(std::make_unique<State>(loop)) {}

LoopRequest::~LoopRequest() {
  stop();
  curl_multi_cleanup(state_->multi);
}

void LoopRequest::ask(const LoopQuestion& question, Done done) {
  State& s = *state_;
  s.easy = curl_easy_init();
  if (s.easy == nullptr) throw MachineError("libcurl cannot be started");
  s.done = std::move(done);
  for (const std::string& header : question.headers) {
    s.lines = curl_slist_append(s.lines, header.c_str());
  }
  curl_easy_setopt(s.easy, CURLOPT_URL, question.url.c_str());
  curl_easy_setopt(s.easy, CURLOPT_HTTPHEADER, s.lines);
  if (question.put) {
    curl_easy_setopt(s.easy, CURLOPT_CUSTOMREQUEST, "PUT");
    curl_easy_setopt(s.easy, CURLOPT_POSTFIELDS, "");
  }
  curl_easy_setopt(s.easy, CURLOPT_PROXY, "");  // the machine's own network has none
  curl_easy_setopt(s.easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(s.easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectMilliseconds);
  curl_easy_setopt(s.easy, CURLOPT_TIMEOUT_MS, kMostMilliseconds);
  curl_easy_setopt(s.easy, CURLOPT_OPENSOCKETFUNCTION, &open_socket);
  curl_easy_setopt(s.easy, CURLOPT_WRITEFUNCTION, &take_bytes);
  curl_easy_setopt(s.easy, CURLOPT_WRITEDATA, &s.body);
  curl_multi_add_handle(s.multi, s.easy);
}

bool LoopRequest::busy() const { return state_->easy != nullptr; }

void LoopRequest::stop() { state_->clear(); }

void LoopRequest::check_time(Clock::time_point now) {
  if (!state_->timer || now < *state_->timer) return;
  state_->timer.reset();
  state_->go_on(CURL_SOCKET_TIMEOUT);
}

std::optional<Clock::time_point> LoopRequest::next_deadline() const {
  return busy() ? state_->timer : std::nullopt;
}

}  // namespace lockstep
