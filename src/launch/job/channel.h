// Carries messages between the launcher and an agent over two descriptors: the agent's standard
// input and output, through ssh. A stream begins with a line that identifies the sender, to
// separate it from what a login shell prints before; then come frames: u32 bytes of what follows,
// u8 kind, payload (little-endian). Never blocks: what cannot be sent yet waits in memory.
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

// Splits bytes into frames, in whatever pieces they arrive.
class FrameReader {
 public:
  using Visit = std::function<void(const Frame&)>;

  // Throws MachineError for a stream that is not ours: too much text before the first line, or a
  // frame of impossible length.
  void take(std::string_view bytes, const Visit& visit);
  bool begun() const { return begun_; }
  // What came before the stream began: output of a login shell, or an error.
  const std::string& preamble() const { return pending_; }

 private:
  bool find_beginning();
  bool begun_ = false;
  std::string pending_;
};

class Channel {
 public:
  using Visit = FrameReader::Visit;

  // Takes ownership of both descriptors and makes them non-blocking.
  Channel(EventLoop& loop, Descriptor reading, Descriptor writing);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // From now on every frame that arrives is passed to `visit`. `ended` is called once, with an
  // empty text when the other end has closed, or with what is wrong with its stream. Neither may
  // destroy this object.
  void listen(Visit visit, std::function<void(const std::string& why)> ended);

  void begin();  // sends the first line
  void send(char kind, std::string_view payload = {});
  // Bytes still to be sent.
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
  std::size_t written_ = 0;  // bytes written of the first in the queue
  std::size_t unsent_ = 0;
  bool ended_ = false;
  Clock::time_point last_heard_ = Clock::now();
};

}  // namespace lockstep
