// How ranks meet: the place that a rank publishes in the store, and the first bytes of whoever
// connects to a mesh, a heartbeat or a server of pieces.
#include "dist/rank/meeting.h"

#include <cstring>

#include "fuzz.h"

FUZZ(bytes) {
  using namespace lockstep;
  static Doorkeeper door(Token{});
  try_one([&] { return meeting_place_of(take_part(bytes)); });
  Introduction introduction;
  if (bytes.size() < sizeof introduction) return;
  std::memcpy(&introduction, bytes.data(), sizeof introduction);
  if (door.admit(introduction)) std::abort();  // nobody makes an HMAC-SHA256 by trying
}
