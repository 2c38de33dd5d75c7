#include "dist/collectives/store.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "dist/liveness/peer_error.h"
#include "dist/rank/network.h"
#include "dist/store/store_client.h"
#include "dist/store/store_server.h"

namespace lockstep {
namespace {

std::string arrival_key(int rank) { return fmt::format("arrived/{}", rank); }

// Where a store is served, and the secret by which it knows its clients.
struct Place {
  std::string address;
  int port = 0;
  Token secret;
};

// Our store behind c10d's interface, which Gloo and NCCL use. The last one on rank 0 ends the
// server.
class RunStore : public c10d::Store {
 public:
  RunStore(Place place, std::chrono::milliseconds timeout, std::shared_ptr<StoreServer> server)
      : Store(timeout),
        place_(std::move(place)),
        server_(std::move(server)),
        client_(place_.address, place_.port, place_.secret, timeout) {}

  using Store::compareSet;
  using Store::set;

  c10::intrusive_ptr<Store> clone() override {
    return c10::make_intrusive<RunStore>(place_, timeout_, server_);
  }
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    ask({.verb = StoreVerb::kSet, .parts = {key, text_of(value)}});
  }
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& current,
                                  const std::vector<uint8_t>& wished) override {
    return bytes_of(
        ask({.verb = StoreVerb::kCompareSet, .parts = {key, text_of(current), text_of(wished)}}));
  }
  std::vector<uint8_t> get(const std::string& key) override {
    return bytes_of(wait_for(StoreVerb::kGet, {key}, timeout_));
  }
  // At once: one by one, as c10d does, ranks ask for the square of their number.
  std::vector<std::vector<uint8_t>> multiGet(const std::vector<std::string>& keys) override {
    std::vector<std::vector<uint8_t>> out;
    for (const std::string& value : wait_for(StoreVerb::kGet, keys, timeout_).parts) {
      out.emplace_back(value.begin(), value.end());
    }
    return out;
  }
  int64_t add(const std::string& key, int64_t value) override {
    return ask({.verb = StoreVerb::kAdd, .number = value, .parts = {key}}).number;
  }
  bool deleteKey(const std::string& key) override {
    return ask({.verb = StoreVerb::kErase, .parts = {key}}).number != 0;
  }
  bool check(const std::vector<std::string>& keys) override {
    return ask({.verb = StoreVerb::kCheck, .parts = keys}).number != 0;
  }
  int64_t getNumKeys() override { return ask({.verb = StoreVerb::kCount}).number; }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    wait_for(StoreVerb::kWait, keys, timeout);
  }

 private:
  static std::string text_of(const std::vector<uint8_t>& bytes) {
    return {bytes.begin(), bytes.end()};
  }
  static std::vector<uint8_t> bytes_of(const StoreFrame& answer) {
    const std::string& value = answer.parts.at(0);
    return {value.begin(), value.end()};
  }
  StoreFrame ask(const StoreFrame& request) { return client_.ask(request, timeout_); }
  StoreFrame wait_for(StoreVerb verb, const std::vector<std::string>& keys,
                      std::chrono::milliseconds timeout) {
    constexpr std::chrono::seconds kPatience{10};  // after the time that the server knows
    StoreFrame answer = client_.ask(
        {.verb = verb, .wait_milliseconds = static_cast<uint32_t>(timeout.count()), .parts = keys},
        kPatience);
    if (answer.done) return answer;
    throw MachineError("timed out after {} ms waiting for {} of the store", timeout.count(),
                       join(keys, ", "));
  }

  const Place place_;
  const std::shared_ptr<StoreServer> server_;
  StoreClient client_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> open_store(const LaunchEnvironment& environment,
                                           std::chrono::milliseconds timeout) {
  int port = environment.master_port;
  std::shared_ptr<StoreServer> server;
  if (environment.rank == 0 && !environment.store_is_served) {
    const int socket = environment.store_descriptor >= 0
                           ? environment.store_descriptor
                           : listen_on(environment.master_address, environment.master_port);
    port = port_of(socket);
    if (!environment.secret && !environment.master_address.starts_with("127.")) {
      log_info("no LOCKSTEP_SECRET: whoever reaches port {} of {} can join these ranks", port,
               environment.master_address);
    }
    server = std::make_shared<StoreServer>(socket, environment.shared_secret(), environment.size);
  }
  try {
    c10::intrusive_ptr<c10d::Store> store;
    if (environment.store_is_served) {
      c10d::TCPStoreOptions options;
      options.timeout = timeout;
      options.waitWorkers = false;  // wait_for_all_ranks can say who is missing
      options.port = static_cast<uint16_t>(port);
      store = c10::make_intrusive<c10d::TCPStore>(environment.master_address, options);
    } else {
      store = c10::make_intrusive<RunStore>(
          Place{environment.master_address, port, environment.shared_secret()}, timeout,
          std::move(server));
    }
    std::string prefix = fmt::format("lockstep/{}/{}", environment.run_id, environment.attempt);
    return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
  } catch (const std::exception& exception) {
    MachineError error("rank {} cannot reach rank 0 at {}:{}", environment.rank,
                       environment.master_address, port);
    error.set_cause(plain_text_of(exception));
    error.set_advice(
        "see whether rank 0 started, and whether a firewall lets this port through between the "
        "machines");
    throw error;
  }
}

void wait_for_all_ranks(c10d::Store& store, const LaunchEnvironment& environment,
                        std::chrono::milliseconds timeout) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < environment.size; ++rank) keys.push_back(arrival_key(rank));
  std::string cause;
  try {
    store.set(arrival_key(environment.rank), std::vector<uint8_t>{1});
    store.wait(keys, timeout);
    return;
  } catch (const std::exception& exception) {
    cause = plain_text_of(exception);
  }
  std::vector<std::string> missing;
  try {
    for (int rank = 0; rank < environment.size; ++rank) {
      if (!store.check({arrival_key(rank)})) missing.push_back(std::to_string(rank));
    }
  } catch (const std::exception& exception) {  // the store itself is gone, so rank 0 is
    missing = {"0"};
  }
  MachineError error("not all of {} ranks appeared: missing {} (seen by rank {})", environment.size,
                     missing.empty() ? "none any more" : join(missing, ", "), environment.rank);
  error.set_cause(cause);
  error.set_advice("look at the log of a missing rank; start as many ranks as the world size says");
  throw error;
}

}  // namespace lockstep
