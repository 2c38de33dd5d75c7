// The answers of a process manager, in PMI-1's wire format.
#include "dist/rank/pmi.h"

#include <sys/socket.h>

#include "base/descriptor.h"
#include "fuzz.h"

FUZZ(bytes) {
  int ends[2];
  if (bytes.size() > 60'000 || ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
  const lockstep::Descriptor ours(ends[0]);
  lockstep::Descriptor theirs(ends[1]);
  if (::send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return;
  ::shutdown(theirs.get(), SHUT_WR);
  lockstep::PmiTalk talk(ours.get());
  talk.put("key", "value");
  talk.barrier();
  lockstep::use(talk.get("key"));
}
