// What an agent or a launcher hears from the other through ssh.
#include "fuzz.h"
#include "launch/job/agent_protocol.h"
#include "launch/job/channel.h"

namespace {

template <typename Message>
void decode(std::string_view payload) {
  lockstep::try_one([&] { return lockstep::decode<Message>(payload); });
}

void hear(const lockstep::Frame& frame) {
  using namespace lockstep;
  switch (frame.kind) {
    case kHello:
      return decode<AgentHello>(frame.payload);
    case kPrepare:
      return decode<PrepareOrder>(frame.payload);
    case kPrepared:
      return decode<Prepared>(frame.payload);
    case kStart:
      return decode<StartOrder>(frame.payload);
    case kStop:
      return decode<StopOrder>(frame.payload);
    case kOutput:
      return decode<RankBytes>(frame.payload);
    case kRankEnd:
      return decode<RankEndMessage>(frame.payload);
    case kError:
      return decode<RemoteFailure>(frame.payload);
    case kNotice:
      return decode<HostNotice>(frame.payload);
    default:
      use(decode_number(frame.payload));
  }
}

}  // namespace

FUZZ(bytes) {
  lockstep::FrameReader reader;
  for (std::size_t at = 0; at < bytes.size(); at += 100) reader.take(bytes.substr(at, 100), hear);
}
