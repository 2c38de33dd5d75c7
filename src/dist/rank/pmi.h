// Finds rank 0 under a launcher of the Hydra family (MPICH, Intel MPI), which gives no address but
// an open descriptor (PMI_FD) on which each of its processes may put and get short texts. Protocol:
// PMI-1 wire format, "cmd=NAME key=value ...\n" (Balaji et al., "PMI: A Scalable Parallel
// Process-Management Interface for Extreme-Scale Systems", EuroMPI 2010; MPICH, src/pmi).
#pragma once

#include <string>

#include "dist/rank/launch_environment.h"

namespace lockstep {

// One dialogue with the process manager, from its beginning to its end; the descriptor is borrowed.
class PmiTalk {
 public:
  explicit PmiTalk(int descriptor);  // throws MachineError, as all below, when not understood
  ~PmiTalk();                        // finalizes: without that the manager assumes a crash
  PmiTalk(const PmiTalk&) = delete;
  PmiTalk& operator=(const PmiTalk&) = delete;

  const std::string& job() const { return job_; }  // equal in all processes of a job, in no other
  void put(const std::string& key, const std::string& value);  // texts without blanks
  void barrier();                                              // then get() finds what was put
  std::string get(const std::string& key);

 private:
  // Sends "cmd=`request`", waits for "cmd=`answer` ..." and returns that line.
  std::string ask(const std::string& request, const std::string& answer);

  int descriptor_;
  std::string job_;
};

// Fills in master_address, master_port, run_id and secret of a Hydra job, which leaves them empty:
// rank 0 makes the secret, unless LOCKSTEP_SECRET gives it, opens the store's socket on any free
// port of its host's address and tells the others through PMI_FD. The host's name is the one in
// mpiexec's list of hosts (MPIR_CVAR_CH3_INTERFACE_HOSTNAME or PMI_HOSTNAME). Does nothing where
// the address is known. All ranks of the job call it once. Throws MachineError.
void learn_master(LaunchEnvironment& environment, const GetVariable& get = environment_variable);

}  // namespace lockstep
