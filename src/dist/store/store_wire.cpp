#include "dist/store/store_wire.h"

#include <cstring>

#include "base/error.h"

namespace lockstep {

namespace {

template <typename T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Takes fields off a body. Throws MachineError when the body ends too early.
class FrameReader {
 public:
  explicit FrameReader(std::string_view body) : rest_(body) {}
  template <typename T>
  T take() {
    T out;
    std::memcpy(&out, bytes(sizeof out).data(), sizeof out);
    return out;
  }
  std::string_view bytes(std::size_t count) {
    if (count > rest_.size()) throw MachineError("a frame of the store is cut short");
    const std::string_view out = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return out;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

std::string encode(const StoreFrame& frame) {
  std::string body;
  append(body, frame.verb);
  append(body, static_cast<uint8_t>(frame.done));
  append(body, frame.number);
  append(body, frame.wait_milliseconds);
  for (const std::string& part : frame.parts) {
    append(body, static_cast<uint32_t>(part.size()));
    body += part;
  }
  if (body.size() > kMostStoreBytes) {
    throw MachineError("{} bytes for the store, which takes {} at a time", body.size(),
                       kMostStoreBytes);
  }
  std::string out;
  append(out, static_cast<uint32_t>(body.size()));
  return out + body;
}

std::optional<StoreFrame> take_store_frame(std::string& bytes) {
  uint32_t size = 0;
  if (bytes.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > kMostStoreBytes) throw MachineError("a frame of the store of {} bytes", size);
  if (bytes.size() < sizeof size + size) return std::nullopt;
  FrameReader body(std::string_view(bytes).substr(sizeof size, size));
  StoreFrame out;
  out.verb = static_cast<StoreVerb>(body.take<uint8_t>());
  if (out.verb > StoreVerb::kCount) throw MachineError("no such request to the store");
  out.done = body.take<uint8_t>() != 0;
  out.number = body.take<int64_t>();
  out.wait_milliseconds = body.take<uint32_t>();
  while (!body.empty()) out.parts.emplace_back(body.bytes(body.take<uint32_t>()));
  bytes.erase(0, sizeof size + size);
  return out;
}

}  // namespace lockstep
