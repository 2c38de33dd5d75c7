// What rank 0 and the others hear of each other beside the training: frames, and what is in them.
#include <sys/socket.h>

#include "base/descriptor.h"
#include "dist/liveness/heartbeat_wire.h"
#include "fuzz.h"

namespace {

void read_body(const lockstep::BeatFrame& frame) {
  using namespace lockstep;
  BeatReader body(frame.body);
  switch (frame.type) {
    case BeatType::kGreeting:
      return use(body.take<BeatGreeting>());
    case BeatType::kBeat:
      use(body.take<double>());
      use(body.take<RankStatus>());
      for (auto left = body.take<uint32_t>(); left > 0; --left) use(body.take<OperationRecord>());
      return;
    case BeatType::kAnswer: {
      const auto head = body.take<BeatAnswer>();
      for (uint32_t i = 0; i < head.count; ++i) use(body.take<BeatTableEntry>());
      return;
    }
    default:
      use(body.take_text());
  }
}

}  // namespace

FUZZ(bytes) {
  int ends[2];
  if (bytes.size() > 60'000 || ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
  lockstep::BeatSocket ours(ends[0]);
  const lockstep::Descriptor theirs(ends[1]);
  if (::send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return;
  ours.receive();
  while (const auto frame = ours.next()) {
    try {
      read_body(*frame);
    } catch (const std::runtime_error&) {  // it is too short; the links close the connection
    }
  }
}
