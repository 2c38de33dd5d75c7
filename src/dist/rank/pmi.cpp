#include "dist/rank/pmi.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "dist/rank/network.h"
#include "dist/rank/token.h"

namespace lockstep {

namespace {

// Returns the value of `key` in "cmd=x key=value ..."; empty where there is none.
std::string value_of(const std::string& line, const std::string& key) {
  for (std::string_view word : split_words(line)) {
    if (word.starts_with(key + "=")) return std::string(word.substr(key.size() + 1));
  }
  return "";
}

MachineError misunderstood(const std::string& what) {
  MachineError error("cannot learn from the process manager (PMI_FD) where rank 0 is");
  error.set_cause(what);
  error.set_advice("mpiexec -genv MASTER_ADDR ADDRESS ... (the private address of rank 0's host)");
  return error;
}

void send(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t sent = ::write(descriptor, bytes.data(), bytes.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) throw misunderstood(std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Reads one byte at a time, because what follows the line is not ours to take.
std::string receive_line(int descriptor) {
  std::string line;
  for (char c = 0;;) {
    ssize_t size = ::read(descriptor, &c, 1);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) throw misunderstood(size == 0 ? "it hung up" : std::strerror(errno));
    if (c == '\n') return line;
    line += c;
  }
}

}  // namespace

PmiTalk::PmiTalk(int descriptor) : descriptor_(descriptor) {
  ask("init pmi_version=1 pmi_subversion=1", "response_to_init");
  job_ = value_of(ask("get_my_kvsname", "my_kvsname"), "kvsname");
}

PmiTalk::~PmiTalk() {
  try {
    ask("finalize", "finalize_ack");
  } catch (const MachineError&) {
    // The manager then ends the job for us, and says so itself.
  }
}

std::string PmiTalk::ask(const std::string& request, const std::string& answer) {
  send(descriptor_, "cmd=" + request + "\n");
  std::string line = receive_line(descriptor_);
  std::string status = value_of(line, "rc");
  if (value_of(line, "cmd") != answer || (!status.empty() && status != "0")) {
    throw misunderstood(fmt::format("it answered \"{}\" to \"{}\"", line, request));
  }
  return line;
}

void PmiTalk::put(const std::string& key, const std::string& value) {
  ask(fmt::format("put kvsname={} key={} value={}", job_, key, value), "put_result");
}

void PmiTalk::barrier() { ask("barrier_in", "barrier_out"); }

std::string PmiTalk::get(const std::string& key) {
  return value_of(ask(fmt::format("get kvsname={} key={}", job_, key), "get_result"), "value");
}

namespace {

// Returns the address by which mpiexec, and thus the other hosts, know rank 0's host.
std::string address_of_host(const LaunchEnvironment& environment, const GetVariable& get) {
  if (environment.local_size == environment.size) return "127.0.0.1";
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  std::string host = name;
  for (const char* variable : {"PMI_HOSTNAME", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME"}) {
    host = get(variable).value_or(host);
  }
  LocalAddress own = local_address_towards(host);  // to ourselves: the address it resolves to
  if (own.address.rfind("127.", 0) != 0 && own.address != "::1") return own.address;
  MachineError error("{} is this machine's name for itself only: it resolves to {}", host,
                     own.address);
  error.set_advice("mpiexec -genv MASTER_ADDR ADDRESS ... (the private address of rank 0's host)");
  throw error;
}

}  // namespace

void learn_master(LaunchEnvironment& environment, const GetVariable& get) {
  if (environment.launcher != "MPICH" || !environment.master_address.empty()) return;
  PmiTalk talk(std::atoi(get("PMI_FD").value_or("-1").c_str()));
  if (environment.rank == 0) {
    std::string address = address_of_host(environment, get);
    environment.store_descriptor = listen_on(address, 0);
    talk.put("lockstep-address", address);
    talk.put("lockstep-port", std::to_string(port_of(environment.store_descriptor)));
    talk.put("lockstep-secret", to_hex(environment.secret.value_or(random_token())));
  }
  talk.barrier();
  environment.master_address = talk.get("lockstep-address");
  environment.master_port = std::atoi(talk.get("lockstep-port").c_str());
  environment.secret = token_of_hex(talk.get("lockstep-secret"));
  environment.run_id = talk.job();
}

}  // namespace lockstep
