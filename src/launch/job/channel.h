// Messages between the launcher and an agent over two descriptors: the agent's standard input and
// output, which ssh carries. A stream begins with a line that says who speaks, so that what a login
// shell prints before it is told apart; then frames: u32 bytes of what follows, u8 kind, payload
// (little-endian). Never blocks: what cannot be sent yet waits in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "launch/processes/descriptor.h"
#include "launch/processes/event_loop.h"

namespace lockstep {

struct Frame {
  char kind = 0;
  std::string_view payload;  // valid during the call only
};

std::string encode_frame(char kind, std::string_view payload);

// Cuts bytes into frames, whatever pieces they come in.
class FrameReader {
 public:
  using Visit = std::function<void(const Frame&)>;

  // Throws MachineError for what is no stream of ours: too much before the first line, or a frame
  // of impossible length.
  void take(std::string_view bytes, const Visit& visit);
  bool begun() const { return begun_; }
  // What came before the stream began: a login shell's words, or an error.
  const std::string& preamble() const { return pending_; }

 private:
  bool find_beginning();
  bool begun_ = false;
  std::string pending_;
};

class Channel {
 public:
  using Visit = FrameReader::Visit;

  // Takes both descriptors and makes them non-blocking.
  Channel(EventLoop& loop, Descriptor reading, Descriptor writing);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // From now on every frame that comes is visited. `ended` is called once, when the other end has
  // gone (nothing) or speaks no language of ours (why). This may be destroyed within neither.
  void listen(Visit visit, std::function<void(const std::string& why)> ended);

  void begin();  // sends the first line
  void send(char kind, std::string_view payload = {});
  // Bytes that wait for the other end.
  std::size_t waiting() const { return unsent_; }
  Clock::time_point last_heard() const { return last_heard_; }
  const FrameReader& reader() const { return reader_; }
  bool ended() const { return ended_; }
  void close();

 private:
  void queue(std::string bytes);
  void write();
  void read();
  void end(const std::string& why);

  EventLoop& loop_;
  Descriptor reading_, writing_;
  FrameReader reader_;
  Visit visit_;
  std::function<void(const std::string&)> on_end_;
  std::deque<std::string> queue_;
  std::size_t written_ = 0;  // of the first in the queue
  std::size_t unsent_ = 0;
  bool ended_ = false;
  Clock::time_point last_heard_ = Clock::now();
};

}  // namespace lockstep
