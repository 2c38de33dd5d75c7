// Starts a child whose streams are ours: ssh, or a shell on this machine.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "launch/processes/descriptor.h"

namespace lockstep {

struct Pipe {
  Descriptor read_end, write_end;
};

Pipe open_pipe();  // closed on exec; throws MachineError

// Returns a file in memory that is open at its start, so that neither end ever waits for the other;
// closed on exec. Throws MachineError.
Descriptor memory_file(const std::string& content);
// Returns at most `most` bytes of it, wherever it is open.
std::string text_of_memory_file(int file, std::size_t most);

// Returns the path of a program: the name itself when it holds a slash, else the first in PATH.
// Throws ConfigError when there is none that can be run.
std::string find_program(const std::string& name);

// Starts words[0] (a path, or found in PATH) in a process group of its own, so that Ctrl-C does not
// reach it; it is killed (SIGKILL) when we die. REQUIRES that the calling thread lives on. Throws
// ConfigError for a program that does not exist, MachineError when no process can be started; the
// child exits with 127 when exec fails.
pid_t start_process(std::vector<std::string> words, int input, int output, int errors);

}  // namespace lockstep
