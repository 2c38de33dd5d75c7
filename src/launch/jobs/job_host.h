// What a host of a job does for the commands on jobs that run elsewhere: `lockstep job PART`, which
// ssh starts there (commands/hosts/job.cpp).
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

// Starts the launcher of a job in a session of its own, prints what it says meanwhile, and returns
// once its ranks run and have taken a step or had some seconds for it: 0; or once it has ended: its
// exit code. Throws ConfigError when there is no such job or folder, MachineError when its launcher
// runs already.
int start_job_launcher(const std::string& id);

// Removes the key of a job that is over, and then notes that it is. A record of a higher term stays
// as it is.
void end_job_here(const std::string& id, int term, int exit_code, const std::string& message);

struct JobOutput {
  std::string id;
  int rank = -1;                             // whose log; -1: what the launcher printed
  int64_t out_offset = -1, err_offset = -1;  // where to begin; -1: see lines
  int lines = 0;                             // to begin with before the end; -1: all
  bool follow = true;                        // until the job is over
};

// Writes to standard output, as frames (job_stream.h), what a job's launcher or a rank here
// printed. With `follow` it goes on until no launcher or agent of the job is left here, and then
// says how the job ended. Throws DataError when there is no such file.
void send_job_output(const JobOutput& wanted);

// Asks a job's launcher to stop, or with `kill` to kill its ranks at once, and sends what it prints
// from then on until it has ended.
void stop_and_send_output(const std::string& id, bool kill);

}  // namespace lockstep
