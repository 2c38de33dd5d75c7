#include "dist/store/store_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "dist/rank/network.h"

namespace lockstep {

namespace {

constexpr std::chrono::seconds kProofLimit{5};
constexpr int kMostStrangers = 64;  // beside those that are expected
// A client that does not take its answers, or asks on without waiting for them, is none of ours.
constexpr std::size_t kMostHeld = 2 * kMostStoreBytes;

}  // namespace

StoreServer::StoreServer(int listener, const Token& secret, int expected)
    : listener_(listener),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      secret_(secret),
      most_strangers_(kMostStrangers + expected) {
  if (!wake_.open()) throw MachineError("the store cannot be served: {}", std::strerror(errno));
  sigset_t all, before;  // signals are for the program's main thread
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

StoreServer::~StoreServer() {
  stopping_ = true;
  const uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) != sizeof one) {
    // The counter is full, so the thread wakes anyway.
  }
  thread_.join();
}

void StoreServer::serve() {
  std::vector<pollfd> wanted;
  while (!stopping_) {
    wanted = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Client& client : clients_) {
      const int events = client.out.empty() ? POLLIN : POLLIN | POLLOUT;
      wanted.push_back({client.socket.get(), static_cast<short>(events), 0});
    }
    ::poll(wanted.data(), wanted.size(), milliseconds_to_next_deadline());
    std::size_t at = 2;
    for (Client& client : clients_) {
      const short events = wanted[at++].revents;
      if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read(client);
    }
    if ((wanted[1].revents & POLLIN) != 0) let_in();
    answer_all_waiting();
    const Clock::time_point now = Clock::now();
    for (Client& client : clients_) {
      if (!client.known && now - client.since > kProofLimit) client.socket.close();
      if (!client.out.empty()) write(client);
    }
    std::erase_if(clients_, [](const Client& client) { return !client.socket.open(); });
  }
}

// What one of them asks next may be what another waits for.
void StoreServer::answer_all_waiting() {
  do {
    changed_ = false;
    for (Client& client : clients_) {
      if (client.waiting && answer_waiting(client)) take_requests(client);
    }
  } while (changed_);
}

int StoreServer::milliseconds_to_next_deadline() const {
  Clock::time_point next = Clock::time_point::max();
  for (const Client& client : clients_) {
    if (!client.known) next = std::min(next, client.since + kProofLimit);
    if (client.waiting) next = std::min(next, client.until);
  }
  if (next == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left + 1, 0, 60'000));
}

void StoreServer::let_in() {
  Client client{.socket = Descriptor(
                    ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)),
                .nonce = random_token(),
                .since = Clock::now()};
  if (!client.socket.open()) return;
  send_promptly(client.socket.get());
  try_again_soon(client.socket.get());
  client.out.assign(reinterpret_cast<const char*>(client.nonce.data()), client.nonce.size());
  clients_.push_back(std::move(client));
  auto stranger = [](const Client& c) { return !c.known && c.socket.open(); };
  if (std::count_if(clients_.begin(), clients_.end(), stranger) > most_strangers_) {
    std::find_if(clients_.begin(), clients_.end(), stranger)->socket.close();
  }
}

void StoreServer::read(Client& client) {
  char space[64 << 10];
  const ssize_t got = ::recv(client.socket.get(), space, sizeof space, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return client.socket.close();
  client.in.append(space, static_cast<std::size_t>(got));
  if (!client.known) prove(client);
  if (client.known) take_requests(client);
}

void StoreServer::prove(Client& client) {
  Introduction given;
  if (client.in.size() < sizeof given) return;
  std::memcpy(&given, client.in.data(), sizeof given);
  if (!same_proof(given.proof, client_proof(secret_, client.nonce, given.nonce))) {
    return client.socket.close();
  }
  client.in.erase(0, sizeof given);
  client.known = true;
  const Proof ours = server_proof(secret_, client.nonce, given.nonce);
  client.out.append(reinterpret_cast<const char*>(ours.data()), ours.size());
}

void StoreServer::take_requests(Client& client) try {
  while (!client.waiting) {
    std::optional<StoreFrame> request = take_store_frame(client.in);
    if (!request) break;
    if (request->verb == StoreVerb::kGet || request->verb == StoreVerb::kWait) {
      client.until = Clock::now() + std::chrono::milliseconds(request->wait_milliseconds);
      client.seen = 0;
      client.waiting = std::move(request);
      answer_waiting(client);  // at once, if it can be
    } else {
      client.out += encode(answer(*request));
    }
  }
  if (client.out.size() > kMostHeld || client.in.size() > kMostHeld) client.socket.close();
} catch (const MachineError&) {  // no frame of ours
  client.socket.close();
}

bool StoreServer::answer_waiting(Client& client) {
  const std::vector<std::string>& keys = client.waiting->parts;
  while (client.seen < keys.size() && values_.contains(keys[client.seen])) ++client.seen;
  const bool there = client.seen == keys.size();
  if (!there && Clock::now() < client.until) return false;
  StoreFrame out{.verb = client.waiting->verb, .done = there};
  if (there && out.verb == StoreVerb::kGet) {
    for (const std::string& key : keys) out.parts.push_back(values_.at(key));
  }
  client.waiting.reset();
  try {
    client.out += encode(out);
  } catch (const MachineError&) {  // more than a frame may have
    client.socket.close();
  }
  return true;
}

StoreFrame StoreServer::answer(StoreFrame& request) {
  std::vector<std::string>& parts = request.parts;
  StoreFrame out{.verb = request.verb};
  changed_ = true;
  auto need = [&](std::size_t count) {
    if (parts.size() != count) throw MachineError("a request of {} parts", parts.size());
  };
  auto there = [&](const std::string& key) { return values_.contains(key); };
  switch (request.verb) {
    case StoreVerb::kSet:
      need(2);
      values_[std::move(parts[0])] = std::move(parts[1]);
      break;
    case StoreVerb::kAdd: {
      need(1);
      std::string& value = values_[std::move(parts[0])];
      int64_t sum = 0;
      std::from_chars(value.data(), value.data() + value.size(), sum);
      out.number = sum + request.number;
      value = std::to_string(out.number);
      break;
    }
    case StoreVerb::kErase:
      need(1);
      out.number = static_cast<int64_t>(values_.erase(parts[0]));
      break;
    case StoreVerb::kCheck:
      out.number = std::all_of(parts.begin(), parts.end(), there) ? 1 : 0;
      break;
    case StoreVerb::kCompareSet: {
      need(3);
      // An absent key takes the wished value when nothing was expected (c10d's TCPStore).
      if (!there(parts[0])) {
        if (!parts[1].empty()) {
          out.parts = {std::move(parts[1])};
          break;
        }
        values_[parts[0]] = parts[2];
      } else if (values_.at(parts[0]) == parts[1]) {
        values_[parts[0]] = parts[2];
      }
      out.parts = {values_.at(parts[0])};
      break;
    }
    case StoreVerb::kCount:
      out.number = static_cast<int64_t>(values_.size());
      break;
    case StoreVerb::kGet:
    case StoreVerb::kWait:
      break;  // those wait
  }
  return out;
}

void StoreServer::write(Client& client) {
  if (!client.socket.open()) return;
  const ssize_t sent =
      ::send(client.socket.get(), client.out.data(), client.out.size(), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (sent < 0) return client.socket.close();
  client.out.erase(0, static_cast<std::size_t>(sent));
}

}  // namespace lockstep
