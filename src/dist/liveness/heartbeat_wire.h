// Declares the messages of heartbeats, and the socket that carries them: frames of a type, a length
// and a body over TCP, never blocking, bounded in size. Bodies are plain structs as they lie in
// memory: all ranks run the same build (the greeting checks it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "dist/liveness/failure_detector.h"
#include "dist/liveness/stop_news.h"
#include "dist/rank/meeting.h"

namespace lockstep {

enum class BeatType : uint32_t {
  kGreeting = 1,  // to rank 0, first: an introduction, and the identity
  kBeat,          // to rank 0: status and the operations since the last
  kAnswer,        // to the others, for each beat: times, and now and then all ranks
  kTrouble,       // to rank 0: an operation failed here; who is at fault?
  kFailure,       // to rank 0: this rank ends for a reason of its own
  kFarewell,      // both ways: done; the end of the connection is no failure
  kVerdict,       // to the others: a RankVerdict
  kMachine,       // to rank 0, once a second from one rank of each machine: MachineFigures
  kStop,          // both ways: StopMessage
  kWelcome,       // to the others, first: a Proof
};

inline constexpr std::ptrdiff_t kBeatOperations = 32;  // the newest, that rank 0 remembers of each

struct BeatFrame {
  BeatType type;
  std::string body;
};

struct BeatGreeting {
  Introduction introduction;
  uint32_t layout = 0;  // wire_layout()
  RankIdentity identity;
};
// A number that changes with the size of any struct that is sent.
uint32_t wire_layout();

struct BeatAnswer {
  double beat_sent = 0, received = 0, sent = 0;  // system clock, seconds since 1970
  uint32_t count = 0;                            // BeatTableEntry items that follow; 0: none
};
struct BeatTableEntry {
  RankIdentity identity;
  RankStatus status;
  Presence presence = Presence::kAbsent;
  double age_seconds = 0;  // since its newest heartbeat
  OperationRecord last;
};

class BeatWriter {
 public:
  template <typename T>
  BeatWriter& add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    body_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  BeatWriter& add_text(std::string_view text) {
    add(static_cast<uint32_t>(text.size()));
    body_.append(text);
    return *this;
  }
  const std::string& body() const { return body_; }

 private:
  std::string body_;
};

// Throws std::runtime_error when the body ends too early.
class BeatReader {
 public:
  explicit BeatReader(std::string_view body) : rest_(body) {}
  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T out;
    std::memcpy(&out, bytes(sizeof out).data(), sizeof out);
    return out;
  }
  std::string take_text() { return std::string(bytes(take<uint32_t>())); }

 private:
  std::string_view bytes(std::size_t count) {
    if (count > rest_.size()) throw std::runtime_error("a heartbeat was cut short");
    std::string_view out = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return out;
  }
  std::string_view rest_;
};

class BeatSocket {
 public:
  explicit BeatSocket(int descriptor);  // takes ownership
  ~BeatSocket();
  BeatSocket(BeatSocket&& other) noexcept;
  BeatSocket& operator=(BeatSocket&& other) noexcept;

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  // Sets the limit; a longer frame ends the connection.
  void set_limit(std::size_t bytes) { limit_ = bytes; }

  // Reads what has arrived. Afterwards is_open() is false when the other side has closed the
  // connection or sent something invalid; frames that came before can still be taken.
  void receive();
  std::optional<BeatFrame> next();
  // Never blocks: what cannot be sent now waits for the next send or flush.
  void send(BeatType type, std::string_view body);
  void flush();
  bool has_backlog() const { return !out_.empty(); }
  void close();

 private:
  int descriptor_ = -1;
  std::size_t limit_ = 4096;
  std::string in_, out_;
};

// Return the numeric address at this or the other end of a connected socket;
// empty when there is none.
std::string own_address(int socket);
std::string peer_address(int socket);

}  // namespace lockstep
