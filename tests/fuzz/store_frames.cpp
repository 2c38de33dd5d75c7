// Requests to the store of rank 0, after the proof.
#include "dist/store/store_wire.h"
#include "fuzz.h"

FUZZ(bytes) {
  std::string held;
  for (std::size_t at = 0; at < bytes.size(); at += 50) {
    held += bytes.substr(at, 50);
    while (auto frame = lockstep::take_store_frame(held)) {
      if (frame->parts.size() < 1000) lockstep::use(lockstep::encode(*frame));
    }
  }
}
