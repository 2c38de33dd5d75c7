#include "commands/hosts/job.h"

#include <charconv>

#include "launch/jobs/job_host.h"
#include "launch/jobs/job_sighting.h"

namespace lockstep {

namespace {

int list_here(const Arguments& arguments) {
  CommandLine app("Says which jobs this host has.", "lockstep job list");
  if (app.parse(arguments)) fmt::print("{}", to_text(look_at_jobs()));
  return kExitOk;
}

int start_here(const Arguments& arguments) {
  std::string id;
  CommandLine app("Starts the launcher of a job.", "lockstep job start");
  app.add_option("job", id, "its id")->required();
  return app.parse(arguments) ? start_job_launcher(id) : static_cast<int>(kExitOk);
}

int send_output(const Arguments& arguments) {
  JobOutput wanted;
  bool once = false;
  CommandLine app("Sends what a job prints.", "lockstep job output");
  app.add_option("job", wanted.id, "its id")->required();
  app.add_option("--rank", wanted.rank, "whose log");
  app.add_option("--out", wanted.out_offset, "where to begin in standard output");
  app.add_option("--err", wanted.err_offset, "where to begin in standard error");
  app.add_option("--lines", wanted.lines, "the last so many; -1: all");
  app.add_flag("--once", once, "what there is, without waiting for more");
  if (!app.parse(arguments)) return kExitOk;
  wanted.follow = !once;
  send_job_output(wanted);
  return kExitOk;
}

int stop_here(const Arguments& arguments) {
  std::string id;
  bool kill = false;
  CommandLine app("Stops a job and sends what it prints.", "lockstep job stop");
  app.add_option("job", id, "its id")->required();
  app.add_flag("--kill", kill, "at once");
  if (app.parse(arguments)) stop_and_send_output(id, kill);
  return kExitOk;
}

int end_here(const Arguments& arguments) {
  std::string id;
  int term = 0, code = 0;
  CommandLine app("Notes that a job is over and removes its key.", "lockstep job end");
  app.add_option("job", id, "its id")->required();
  app.add_option("term", term, "of its launcher")->required();
  app.add_option("code", code, "its exit code")->required();
  if (app.parse(arguments)) end_job_here(id, term, code, "");
  return kExitOk;
}

const Catalogue<CommandPart>& job_parts() {
  static const Catalogue<CommandPart> catalogue = [] {
    Catalogue<CommandPart> c("part of job");
    c.add("list", list_here, "the jobs of this host");
    c.add("start", start_here, "start a job's launcher");
    c.add("output", send_output, "send what a job prints");
    c.add("stop", stop_here, "stop a job");
    c.add("end", end_here, "note that a job is over");
    return c;
  }();
  return catalogue;
}

}  // namespace

int job_on_host(const Arguments& arguments) { return run_part("job", job_parts(), arguments); }

}  // namespace lockstep
