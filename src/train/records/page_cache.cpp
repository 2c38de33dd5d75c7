#include "train/records/page_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lockstep {

void drop_page_cache(const fs::path& control) {
  ::sync();
  const int descriptor = ::open(control.c_str(), O_WRONLY | O_CLOEXEC);
  bool done = descriptor >= 0 && ::write(descriptor, "3\n", 2) == 2;
  const int reason = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (done) return;
  MachineError error("{}: the caches of this machine cannot be dropped: {}", control.string(),
                     std::strerror(reason));
  error.set_advice("as root, or mlperf.clear_cache=false, which the log then says");
  throw error;
}

}  // namespace lockstep
