// The frames between the rendezvous store (store_server.h) and its clients.
//
// A connection begins with the proof of dist/rank/meeting.h: the server sends 16 random bytes, the
// client an Introduction to them, the server its Proof. Nothing of a stranger is parsed. After it
// each side sends frames: 4 bytes with the length of the body, little-endian, and the body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class StoreVerb : uint8_t {
  kSet,         // KEY VALUE
  kGet,         // KEY...: waits until all are there; answers their values
  kAdd,         // KEY, number: adds to it, from 0; answers the sum
  kErase,       // KEY: answers 1 if it was there
  kCheck,       // KEY...: answers 1 if all are there
  kWait,        // KEY...: waits until all are there
  kCompareSet,  // KEY EXPECTED WISHED: answers the value that is there afterwards
  kCount,       // answers the number of keys
};

// A request or an answer. Of an answer, `verb` is that of the request, and `done` is false when a
// wait was too long.
struct StoreFrame {
  StoreVerb verb = StoreVerb::kSet;
  bool done = true;
  int64_t number = 0;
  uint32_t wait_milliseconds = 0;  // of kGet and kWait
  std::vector<std::string> parts;  // keys and values
};

inline constexpr std::size_t kMostStoreBytes = 16 << 20;  // of one frame's body

std::string encode(const StoreFrame& frame);  // with its length
// Takes the first whole frame off `bytes`; none while it has not arrived. Throws MachineError for
// bytes that are no frame; no memory is taken for lengths that they only claim.
std::optional<StoreFrame> take_store_frame(std::string& bytes);

}  // namespace lockstep
