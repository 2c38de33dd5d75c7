// Files of a job's folder that a process locks while it lives: however it ends, the lock ends with
// it, and others can ask whether it is held (OFD locks of Linux, which NFS has too).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "launch/processes/descriptor.h"

namespace lockstep {

// Who holds a lock, as the file says.
struct JobLockHolder {
  pid_t process = 0;
  int term = 0;  // of the launcher that it is or obeys
};

// Locks the file, made if need be, for this process, and writes down who holds it. The lock ends
// when the descriptor is closed; children do not inherit it. Returns nothing when another process
// holds it. Throws MachineError when the file cannot be opened.
std::optional<Descriptor> take_job_lock(const std::filesystem::path& file, int term);

// Returns who holds the lock now; nothing when nobody does.
std::optional<JobLockHolder> job_lock_holder(const std::filesystem::path& file);

// Kills the holder (SIGKILL) unless its term is `term` or more, and waits until the lock is free.
// Returns whether it is. REQUIRES that the holder is a process of this host.
bool end_older_holder(const std::filesystem::path& file, int term);

}  // namespace lockstep
